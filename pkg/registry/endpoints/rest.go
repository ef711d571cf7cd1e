// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints serves Endpoints of core/v1.
package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// NewREST returns the storage of endpoints over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: corev1.Resource("endpoints"),
		Singular:      "endpoints",
		Namespaced:    true,
		NewFunc:       func() runtime.Object { return &corev1.Endpoints{} },
		NewListFunc:   func() runtime.Object { return &corev1.EndpointsList{} },
		Attrs:         storage.DefaultNamespaceScopedAttr,
		Table:         NewTable(clock.RealClock{}),
		ShortNames:    []string{"ep"},
	}, getter)
}
