// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// protocolPort is what two ports must not have in common.
type protocolPort struct {
	protocol corev1.Protocol
	port     int32
}

func validatePorts(service *corev1.Service, path *field.Path) field.ErrorList {
	ports := service.Spec.Ports
	var errs field.ErrorList
	if len(ports) == 0 && !isHeadless(service) && service.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(path, ""))
	}
	names := sets.New[string]()
	seen, seenNodePorts := sets.New[protocolPort](), sets.New[protocolPort]()
	for i := range ports {
		port, path := &ports[i], path.Index(i)
		errs = append(errs, validatePortName(port.Name, len(ports) > 1, names, path.Child("name"))...)
		errs = append(errs, validatePort(port, path)...)
		if key := (protocolPort{port.Protocol, port.Port}); seen.Has(key) {
			errs = append(errs, field.Duplicate(path, corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
		} else {
			seen.Insert(key)
		}
		if port.NodePort == 0 {
			continue
		}
		if service.Spec.Type == corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if key := (protocolPort{port.Protocol, port.NodePort}); seenNodePorts.Has(key) {
			errs = append(errs, field.Duplicate(path.Child("nodePort"), port.NodePort))
		} else {
			seenNodePorts.Insert(key)
		}
	}
	return errs
}

// validatePortName adds the name to names.
func validatePortName(name string, required bool, names sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		if required {
			return field.ErrorList{field.Required(path, "")}
		}
		return nil
	}
	errs := resource.Invalid(path, name, validation.IsDNS1123Label(name))
	if names.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	names.Insert(name)
	return errs
}

func validatePort(port *corev1.ServicePort, path *field.Path) field.ErrorList {
	errs := resource.Invalid(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))
	switch port.Protocol {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	case "":
		errs = append(errs, field.Required(path.Child("protocol"), ""))
	default:
		errs = append(errs, field.NotSupported(path.Child("protocol"), port.Protocol,
			[]corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}))
	}
	if target := port.TargetPort; target.Type == intstr.Int {
		errs = append(errs, resource.Invalid(path.Child("targetPort"), target.IntValue(), validation.IsValidPortNum(target.IntValue()))...)
	} else {
		errs = append(errs, resource.Invalid(path.Child("targetPort"), target.StrVal, validation.IsValidPortName(target.StrVal))...)
	}
	if port.AppProtocol != nil {
		errs = append(errs, resource.Invalid(path.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))...)
	}
	return errs
}
