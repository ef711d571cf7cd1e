// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Invalid makes an error of each message about a value. No messages, no errors.
func Invalid[V any](path *field.Path, value V, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// OneOf checks a value that must be one of a few. An empty one is missing.
func OneOf[V ~string](path *field.Path, value V, supported ...V) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(path, value, supported)}
	}
	return nil
}

// Protocol checks the protocol of a port.
func Protocol(path *field.Path, protocol corev1.Protocol) field.ErrorList {
	return OneOf(path, protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// DNSLabel checks a name that ends up in a host name.
func DNSLabel(path *field.Path, value string) field.ErrorList {
	return Invalid(path, value, validation.IsDNS1123Label(value))
}

// NodeName checks the name of a node.
func NodeName(path *field.Path, name string) field.ErrorList {
	return Invalid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// IP checks an address in one of the fields in which Kubernetes once took any
// spelling. New values must be in the usual form; one that was stored before
// stays.
func IP(path *field.Path, value string, stored ...string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, value, true, stored)
}

// CIDR is the counterpart of IP for ranges of addresses.
func CIDR(path *field.Path, value string, stored ...string) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, value, true, stored)
}

// QualifiedName checks a name that may have a domain in front.
func QualifiedName(path *field.Path, value string) field.ErrorList {
	return Invalid(path, value, validation.IsQualifiedName(value))
}
