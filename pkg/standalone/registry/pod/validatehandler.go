// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// validateHandler checks what a probe or a lifecycle hook does: one thing.
func validateHandler(path *field.Path, exec *corev1.ExecAction, get *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction,
	grpc *corev1.GRPCAction, sleep *corev1.SleepAction,
) field.ErrorList {
	handlers := []struct {
		name  string
		set   bool
		check func(*field.Path) field.ErrorList
	}{
		{"exec", exec != nil, func(path *field.Path) field.ErrorList {
			if len(exec.Command) == 0 {
				return field.ErrorList{field.Required(path.Child("command"), "")}
			}
			return nil
		}},
		{"httpGet", get != nil, func(path *field.Path) field.ErrorList {
			errs := validatePort(get.Port, path.Child("port"))
			if get.Path == "" {
				errs = append(errs, field.Required(path.Child("path"), ""))
			}
			return append(errs, resource.OneOf(path.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
		}},
		{"tcpSocket", tcp != nil, func(path *field.Path) field.ErrorList {
			return validatePort(tcp.Port, path.Child("port"))
		}},
		{"grpc", grpc != nil, func(path *field.Path) field.ErrorList {
			return resource.Invalid(path.Child("port"), grpc.Port, validation.IsValidPortNum(int(grpc.Port)))
		}},
		{"sleep", sleep != nil, func(path *field.Path) field.ErrorList {
			return apivalidation.ValidateNonnegativeField(sleep.Seconds, path.Child("seconds"))
		}},
	}
	var errs field.ErrorList
	var found bool
	for _, handler := range handlers {
		switch {
		case !handler.set:
		case found:
			errs = append(errs, field.Forbidden(path.Child(handler.name), "may not specify more than 1 handler type"))
		default:
			found = true
			errs = append(errs, handler.check(path.Child(handler.name))...)
		}
	}
	if !found {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func validatePort(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.String {
		return resource.Invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return resource.Invalid(path, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
}
