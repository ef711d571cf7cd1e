// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpoints"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// The label by which the Endpoints controller marks what it made, and its name:
// those of pkg/controller/endpoints, which no registry imports. A test of
// pkg/standalone/registry compares them.
const (
	managedByLabel     = "endpoints.kubernetes.io/managed-by"
	endpointController = "endpoint-controller"
)

func newEndpoints(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.Endpoints]{
		Version:        corev1.SchemeGroupVersion,
		Kind:           "Endpoints",
		Resource:       "endpoints",
		Singular:       "endpoints",
		ShortNames:     []string{"ep"},
		Namespaced:     true,
		New:            func() *corev1.Endpoints { return &corev1.Endpoints{} },
		NewList:        func() runtime.Object { return &corev1.EndpointsList{} },
		Table:          endpoints.NewTable(clock.RealClock{}),
		ValidateName:   apivalidation.NameIsDNSSubdomain,
		CreateOnUpdate: true,
		Rules: resource.Rules[*corev1.Endpoints]{
			Validate: func(_ context.Context, endpoints *corev1.Endpoints) field.ErrorList {
				return validateSubsets(endpoints.Subsets)
			},
			ValidateUpdate: func(_ context.Context, endpoints, old *corev1.Endpoints) field.ErrorList {
				// What was stored before a rule came must not block other changes.
				if apiequality.Semantic.DeepEqual(endpoints.Subsets, old.Subsets) {
					return nil
				}
				return validateSubsets(endpoints.Subsets)
			},
			Warnings: func(_ context.Context, endpoints, _ *corev1.Endpoints) []string {
				if endpoints.Labels[managedByLabel] == endpointController {
					return nil
				}
				return subsetWarnings(endpoints.Subsets)
			},
		},
	})
}

func validateSubsets(subsets []corev1.EndpointSubset) field.ErrorList {
	var errs field.ErrorList
	for i := range subsets {
		subset, path := &subsets[i], field.NewPath("subsets").Index(i)
		if len(subset.Addresses) == 0 && len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range subset.Addresses {
			errs = append(errs, validateAddress(&subset.Addresses[j], path.Child("addresses").Index(j))...)
		}
		for j := range subset.NotReadyAddresses {
			errs = append(errs, validateAddress(&subset.NotReadyAddresses[j], path.Child("notReadyAddresses").Index(j))...)
		}
		for j := range subset.Ports {
			errs = append(errs, validateEndpointPort(&subset.Ports[j], len(subset.Ports) > 1, path.Child("ports").Index(j))...)
		}
	}
	return errs
}

func validateAddress(address *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := resource.IP(path.Child("ip"), address.IP)
	if address.Hostname != "" {
		errs = append(errs, resource.DNSLabel(path.Child("hostname"), address.Hostname)...)
	}
	if address.NodeName != nil {
		errs = append(errs, resource.NodeName(path.Child("nodeName"), *address.NodeName)...)
	}
	return append(errs, resource.EndpointIP(path.Child("ip"), address.IP)...)
}

func validateEndpointPort(port *corev1.EndpointPort, needsName bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" {
		errs = resource.DNSLabel(path.Child("name"), port.Name)
	} else if needsName {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, resource.Invalid(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))...)
	errs = append(errs, resource.Protocol(path.Child("protocol"), port.Protocol)...)
	if port.AppProtocol != nil {
		errs = append(errs, resource.QualifiedName(path.Child("appProtocol"), *port.AppProtocol)...)
	}
	return errs
}

func subsetWarnings(subsets []corev1.EndpointSubset) []string {
	var warnings []string
	for i := range subsets {
		path := field.NewPath("subsets").Index(i)
		for j := range subsets[i].Addresses {
			warnings = append(warnings, validation.GetWarningsForIP(path.Child("addresses").Index(j).Child("ip"), subsets[i].Addresses[j].IP)...)
		}
		for j := range subsets[i].NotReadyAddresses {
			warnings = append(warnings, validation.GetWarningsForIP(path.Child("notReadyAddresses").Index(j).Child("ip"), subsets[i].NotReadyAddresses[j].IP)...)
		}
	}
	return warnings
}
