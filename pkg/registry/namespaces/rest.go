// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces serves Namespaces of core/v1.
package namespaces

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// NewREST returns the storage of namespaces over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: corev1.Resource("namespaces"),
		Singular:      "namespace",
		NewFunc:       func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:   func() runtime.Object { return &corev1.NamespaceList{} },
		Attrs:         GetAttrs,
		Table:         NewTable(clock.RealClock{}),
		ShortNames:    []string{"ns"},
	}, getter)
}

// GetAttrs returns the labels and the selectable fields of a Namespace.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, nil, fmt.Errorf("not a Namespace: %T", obj)
	}
	return namespace.Labels, fields.Set{
		"metadata.name": namespace.Name,
		"status.phase":  string(namespace.Status.Phase),
	}, nil
}
