// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	limits, requests := path.Child("limits"), path.Child("requests")
	errs := validateAmounts(resources.Limits, limits)
	errs = append(errs, validateAmounts(resources.Requests, requests)...)
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		limit, limited := resources.Limits[name]
		switch shared := resource.CanBeShared(name); {
		case !limited && !shared:
			errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case limited && !shared && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateAmounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		key := path.Key(string(name))
		errs = append(errs, validateResourceName(name, key)...)
		errs = append(errs, resource.Quantity(key, name, list[name])...)
	}
	return errs
}

// validateResourceName checks what a container asks for: one of the few
// resources that every node has, or one with a domain.
func validateResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := resource.Invalid(path, name, validation.IsQualifiedName(string(name)))
	if strings.Contains(string(name), "/") {
		return errs
	}
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return errs
	}
	if !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
	}
	return errs
}
