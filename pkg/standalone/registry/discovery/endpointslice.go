// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery stores EndpointSlices of discovery.k8s.io/v1 for the
// standalone server.
package discovery

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpointslices"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "endpointslices".
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*discoveryv1.EndpointSlice]{
		Version:      discoveryv1.SchemeGroupVersion,
		Kind:         "EndpointSlice",
		Resource:     "endpointslices",
		Singular:     "endpointslice",
		Namespaced:   true,
		New:          func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		NewList:      func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		Table:        endpointslices.NewTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*discoveryv1.EndpointSlice]{
			PrepareForCreate: prepareForCreate,
			PrepareForUpdate: prepareForUpdate,
			Validate: func(_ context.Context, slice *discoveryv1.EndpointSlice) field.ErrorList {
				return validateSlice(slice, nil)
			},
			ValidateUpdate: func(_ context.Context, slice, old *discoveryv1.EndpointSlice) field.ErrorList {
				errs := validateSlice(slice, old)
				return append(errs, apivalidation.ValidateImmutableField(slice.AddressType, old.AddressType, field.NewPath("addressType"))...)
			},
			Warnings: warnings,
		},
	})
}

func prepareForCreate(_ context.Context, slice *discoveryv1.EndpointSlice) {
	slice.Generation = 1
	for i := range slice.Endpoints {
		slice.Endpoints[i].DeprecatedTopology = nil
	}
}

// prepareForUpdate counts a generation for each change of what the slice says,
// or of its labels, which say whose it is.
func prepareForUpdate(_ context.Context, slice, old *discoveryv1.EndpointSlice) {
	// What was stored without a change by this request is left alone.
	if !apiequality.Semantic.DeepEqual(slice.Endpoints, old.Endpoints) {
		for i := range slice.Endpoints {
			slice.Endpoints[i].DeprecatedTopology = nil
		}
	}
	changed, before := *slice, *old
	changed.TypeMeta, changed.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{Labels: slice.Labels}
	before.TypeMeta, before.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{Labels: old.Labels}
	if !apiequality.Semantic.DeepEqual(changed, before) {
		slice.Generation = old.Generation + 1
	}
}

// warnings has none about addresses: validateSlice refuses those in any but the
// usual form.
func warnings(_ context.Context, slice, old *discoveryv1.EndpointSlice) []string {
	if old == nil && slice.AddressType == discoveryv1.AddressTypeFQDN {
		return []string{"spec.addressType: FQDN endpoints are deprecated"}
	}
	return nil
}
