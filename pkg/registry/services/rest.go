// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services serves Services of core/v1.
package services

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

// NewREST returns the storage of services over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: corev1.Resource("services"),
		Singular:      "service",
		Namespaced:    true,
		NewFunc:       func() runtime.Object { return &corev1.Service{} },
		NewListFunc:   func() runtime.Object { return &corev1.ServiceList{} },
		Attrs:         GetAttrs,
		Table:         NewTable(clock.RealClock{}),
		ShortNames:    []string{"svc"},
		Categories:    []string{"all"},
	}, getter)
}

// GetAttrs returns the labels and the selectable fields of a Service.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil, nil, fmt.Errorf("not a Service: %T", obj)
	}
	return service.Labels, fields.Set{
		"metadata.name":      service.Name,
		"metadata.namespace": service.Namespace,
		"spec.clusterIP":     service.Spec.ClusterIP,
		"spec.type":          string(service.Spec.Type),
	}, nil
}
