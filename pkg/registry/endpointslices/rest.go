// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslices serves EndpointSlices of discovery.k8s.io/v1.
package endpointslices

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// NewREST returns the storage of endpointslices over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: discoveryv1.Resource("endpointslices"),
		Singular:      "endpointslice",
		Namespaced:    true,
		NewFunc:       func() runtime.Object { return &discoveryv1.EndpointSlice{} },
		NewListFunc:   func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		Attrs:         storage.DefaultNamespaceScopedAttr,
		Table:         NewTable(clock.RealClock{}),
	}, getter)
}
