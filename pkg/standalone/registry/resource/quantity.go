// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IsNative tells resources of Kubernetes itself, whose names have no domain or
// its own, from those that somebody has added.
func IsNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// CanBeShared tells whether more of a resource may be promised than there is.
func CanBeShared(name corev1.ResourceName) bool {
	return IsNative(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Quantity checks how much there is of a resource: what can only be counted
// comes in whole numbers.
func Quantity(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) field.ErrorList {
	var errs field.ErrorList
	if quantity.Sign() < 0 {
		errs = append(errs, field.Invalid(path, quantity.String(), apivalidation.IsNegativeErrorMsg))
	}
	if (name == corev1.ResourcePods || !IsNative(name)) && quantity.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, quantity.String(), "must be an integer"))
	}
	return errs
}
