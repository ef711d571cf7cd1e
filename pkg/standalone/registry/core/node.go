// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/nodes"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/pod"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newNodes(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.Node]{
		Version:      corev1.SchemeGroupVersion,
		Kind:         "Node",
		Resource:     "nodes",
		Singular:     "node",
		ShortNames:   []string{"no"},
		New:          func() *corev1.Node { return &corev1.Node{} },
		NewList:      func() runtime.Object { return &corev1.NodeList{} },
		Table:        nodes.NewTable(clock.RealClock{}),
		Attrs:        nodes.GetAttrs,
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*corev1.Node]{
			Reset: resource.StatusField(),
			// A kubelet registers its node together with its status, so that a new
			// one keeps it.
			PrepareForCreate: func(_ context.Context, node *corev1.Node) {
				dropConfigSource(&node.Spec)
				node.Status.Config = nil
			},
			PrepareForUpdate: func(_ context.Context, node, old *corev1.Node) {
				node.Status = old.Status
				dropConfigSource(&node.Spec)
			},
			Validate: func(_ context.Context, node *corev1.Node) field.ErrorList { return validateNode(node) },
			ValidateUpdate: func(_ context.Context, node, old *corev1.Node) field.ErrorList {
				return append(validateNode(node), validateNodeUpdate(node, old)...)
			},
		},
		Status: &resource.Rules[*corev1.Node]{
			Reset: resource.SpecField(),
			PrepareForUpdate: func(_ context.Context, node, old *corev1.Node) {
				node.Spec = old.Spec
				if old.Status.Config == nil {
					node.Status.Config = nil
				}
			},
			ValidateUpdate: func(_ context.Context, node, old *corev1.Node) field.ErrorList {
				return append(validateNodeResources(node), validateNodeUpdate(node, old)...)
			},
		},
	})
}

// dropConfigSource drops what no kubelet reads any more.
func dropConfigSource(spec *corev1.NodeSpec) {
	spec.ConfigSource = nil //nolint:staticcheck // dropping it is all that is done with it
}

func validateNode(node *corev1.Node) field.ErrorList {
	// The answers of kube-apiserver have the taints in the metadata.
	errs := validateTaints(node.Spec.Taints, field.NewPath("metadata", "taints"))
	errs = append(errs, validateNodeResources(node)...)
	path := field.NewPath("spec", "podCIDRs")
	for i, cidr := range node.Spec.PodCIDRs {
		errs = append(errs, resource.CIDR(path.Index(i), cidr)...)
	}
	if len(node.Spec.PodCIDRs) > 1 {
		dual, err := utilnet.IsDualStackCIDRStrings(node.Spec.PodCIDRs)
		if err == nil && (!dual || len(node.Spec.PodCIDRs) > 2) {
			errs = append(errs, field.Invalid(path, node.Spec.PodCIDRs, "may specify no more than one CIDR for each IP family"))
		}
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type keyAndEffect struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[keyAndEffect]bool{}
	for i := range taints {
		taint, item := &taints[i], path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint.Key, item.Child("key"))...)
		if messages := validation.IsValidLabelValue(taint.Value); len(messages) > 0 {
			errs = append(errs, field.Invalid(item.Child("value"), taint.Value, strings.Join(messages, ";")))
		}
		errs = append(errs, pod.ValidateTaintEffect(taint.Effect, item.Child("effect"))...)
		key := keyAndEffect{taint.Key, taint.Effect}
		if seen[key] {
			duplicate := field.Duplicate(item, *taint)
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen[key] = true
	}
	return errs
}

func validateNodeResources(node *corev1.Node) field.ErrorList {
	errs := validateAmounts(node.Status.Capacity, field.NewPath("status", "capacity"))
	return append(errs, validateAmounts(node.Status.Allocatable, field.NewPath("status", "allocatable"))...)
}

func validateAmounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		errs = append(errs, resource.Quantity(path.Child(string(name)), name, list[name])...)
	}
	return errs
}

// validateNodeUpdate is for both kinds of updates.
func validateNodeUpdate(node, old *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.NodeAddress]bool{}
	for i, address := range node.Status.Addresses {
		if seen[address] {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), address))
		}
		seen[address] = true
	}
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	path := field.NewPath("spec", "providerID")
	switch {
	case old.Spec.ProviderID == "" || node.Spec.ProviderID == old.Spec.ProviderID:
	case node.Spec.ProviderID == "":
		errs = append(errs, field.Invalid(path, nil, "field cannot be cleared once set"))
	default:
		errs = append(errs, field.Invalid(path, nil, "field cannot be modified once set"))
	}
	if node.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "externalID"), "may not be updated"))
	}
	return errs
}
