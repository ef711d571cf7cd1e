// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Differ tells which objects of the view are not what upstream has. It is called for each write to Endpoints and
// EndpointSlices, from many goroutines at once, and must not block.
type Differ interface {
	// Differs reports whether the view of the object lacks or replaces something of the object upstream.
	Differs(gr schema.GroupResource, namespace, name string) bool
}

// filteredKinds are the kinds whose objects may differ, with the field that the view changes.
var filteredKinds = map[schema.GroupResource]struct {
	kind  string
	field string
}{
	endpointsResource.GroupResource():      {"Endpoints", "subsets"},
	endpointSlicesResource.GroupResource(): {"EndpointSlice", "endpoints"},
}

// filteredFields are the fields of both kinds that depend on which endpoints the view shows.
var filteredFields = []string{"endpoints", "subsets", "ports"}

// writesWhole reports whether a write replaces the object, or what its manager had put into it, by its body.
func writesWhole(method, mediaType string) bool {
	return method == http.MethodPut || method == http.MethodPatch && strings.HasPrefix(mediaType, "application/apply-patch")
}

// touchesFiltered reports whether a patch touches one of filteredFields. Pure. A patch that is not well formed up to there
// touches nothing: upstream refuses it.
func touchesFiltered(mediaType string, body []byte) bool {
	switch mediaType {
	case jsonPatchType:
		return visitJSONPatch(body, func(operation patchOperation) bool {
			return slices.ContainsFunc(operation.pointers, func(pointer string) bool {
				segments := segmentsOf(pointer)
				return len(segments) == 0 || isFilteredField(segments[0])
			})
		})
	case "application/merge-patch+json", "application/strategic-merge-patch+json":
		return mergePatchTouches(body)
	}
	return false // upstream knows no other kind
}

// mergePatchTouches looks at the names in the outermost object. Directives there ("$patch: replace", "$retainKeys",
// "$setElementOrder/...") may reach any field.
func mergePatchTouches(body []byte) bool {
	decoder := newJSONDecoder(body)
	token, err := decoder.Token()
	if err != nil {
		return false
	}
	if token != json.Delim('{') {
		return true
	}
	for decoder.More() {
		name, err := readKey(decoder)
		if err != nil {
			return false
		}
		if strings.HasPrefix(name, "$") || isFilteredField(name) {
			return true
		}
		if skipValue(decoder) != nil {
			return false
		}
	}
	return false
}

// isFilteredField does not trust that every decoder upstream minds the case.
func isFilteredField(name string) bool {
	return slices.ContainsFunc(filteredFields, func(field string) bool { return strings.EqualFold(field, name) })
}

// newFilteredView refuses a write that would store the view's copy of an object upstream.
func newFilteredView(info *request.RequestInfo, nodeName string) error {
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	of := filteredKinds[gr]
	return apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: of.kind}, info.Name, field.ErrorList{
		field.Forbidden(field.NewPath(of.field), fmt.Sprintf(
			"this is the filtered view of node %q, in which the object differs from the one upstream, and this write would make "+
				"the difference permanent for all nodes; send it to the upstream API server instead, from a copy that was read there", nodeName)),
	})
}
