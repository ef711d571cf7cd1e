// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// filteredKinds are the kinds whose objects may differ, with the field that the view changes.
var filteredKinds = map[schema.GroupResource]struct {
	kind  string
	field string
}{
	endpointsResource.GroupResource():      {"Endpoints", "subsets"},
	endpointSlicesResource.GroupResource(): {"EndpointSlice", "endpoints"},
}

// filteredFields are the fields of both kinds that depend on which endpoints the view shows.
var filteredFields = [][]string{{"endpoints"}, {"subsets"}, {"ports"}}

// uncomparedFields are those that the view does not follow as long as nothing else changes.
var uncomparedFields = [][]string{{"metadata", "managedFields"}, {"metadata", "annotations", corev1.EndpointsLastChangeTriggerTime}}

// newFilteredView refuses a write that would store the view's copy of an object upstream.
func newFilteredView(w *write, nodeName, upstream string) error {
	of := filteredKinds[w.gr]
	return apierrors.NewInvalid(schema.GroupKind{Group: w.gr.Group, Kind: of.kind}, w.name, field.ErrorList{
		field.Forbidden(field.NewPath(of.field), fmt.Sprintf(
			"this is the filtered view of node %q, in which the object differs from the one upstream, and this write would make "+
				"the difference permanent for all nodes; send it to the upstream API server (%s) instead, from a copy that was read there; "+
				"labels and annotations can be changed here", nodeName, upstream)),
	})
}
