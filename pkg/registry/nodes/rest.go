// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes serves Nodes of core/v1.
package nodes

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// NewREST returns the storage of nodes over what the getter provides.
func NewREST(getter generic.RESTOptionsGetter) (*readonly.REST, error) {
	return readonly.NewREST(readonly.Resource{
		GroupResource: corev1.Resource("nodes"),
		Singular:      "node",
		NewFunc:       func() runtime.Object { return &corev1.Node{} },
		NewListFunc:   func() runtime.Object { return &corev1.NodeList{} },
		Attrs:         GetAttrs,
		Table:         NewTable(clock.RealClock{}),
		ShortNames:    []string{"no"},
	}, getter)
}

// GetAttrs returns the labels and the selectable fields of a Node.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, nil, fmt.Errorf("not a Node: %T", obj)
	}
	return node.Labels, fields.Set{
		"metadata.name":      node.Name,
		"spec.unschedulable": strconv.FormatBool(node.Spec.Unschedulable),
	}, nil
}
