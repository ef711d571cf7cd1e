// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/json"
	"slices"
)

// jsonPath leads to values in a document: for each level the names of the members to follow, or eachElement.
type jsonPath [][]string

var (
	// eachElement follows every element of an array.
	eachElement []string

	// preconditionPath leads to what a body holds as a precondition: the revision of an object, whole or as a patch, and that
	// of a DeleteOptions.
	preconditionPath = jsonPath{{"metadata", "preconditions"}, {"resourceVersion"}}
	objectPath       = jsonPath{{"metadata"}, {"resourceVersion"}}
	tableRowPath     = jsonPath{{"rows"}, eachElement, {"object"}, {"metadata"}, {"resourceVersion"}}
)

// visitJSON calls visit for each value at the end of path, in their order. Every occurrence of a duplicate key counts, since
// decoders differ in which one they take.
func visitJSON(data []byte, value span, path jsonPath, visit func(span)) {
	switch {
	case len(path) == 0:
		visit(value)
	case path[0] == nil:
		for element := range elements(data, value) {
			visitJSON(data, element, path[1:], visit)
		}
	default:
		for m := range members(data, value) {
			if slices.ContainsFunc(path[0], func(name string) bool { return isName(data, m.name, name) }) {
				visitJSON(data, m.value, path[1:], visit)
			}
		}
	}
}

// editJSON translates the strings at the end of path.
func editJSON(data []byte, path jsonPath, revisions *translator) []byte {
	result := splice{source: data}
	editJSONValue(&result, document(data), path, revisions)
	return result.result()
}

func editJSONValue(result *splice, value span, path jsonPath, revisions *translator) {
	visitJSON(result.source, value, path, func(at span) {
		if replacement, ok := revisions.of(jsonString(result.source, at)); ok {
			result.replace(at, quoted(replacement))
		}
	})
}

func quoted(text string) []byte {
	quoted, _ := json.Marshal(text) // a string always can be
	return quoted
}
