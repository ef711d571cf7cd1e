// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servicecidrs serves ServiceCIDRs of networking.k8s.io/v1.
package servicecidrs

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// NewREST returns the storage of servicecidrs over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: schema.GroupResource{Group: networkingv1.GroupName, Resource: "servicecidrs"},
		Singular:      "servicecidr",
		NewFunc:       func() runtime.Object { return &networkingv1.ServiceCIDR{} },
		NewListFunc:   func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
		Attrs:         storage.DefaultClusterScopedAttr,
		Table:         NewTable(clock.RealClock{}),
	}, getter)
}
