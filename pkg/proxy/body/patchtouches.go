// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"encoding/json"
	"strings"
)

// PatchTouches reports whether a patch touches one of the fields of an object, each given by the names that lead to it: the
// field itself, something in it, or all of what it is in. Pure. A patch that is not well formed touches nothing, since
// upstream refuses it; neither does a body that is no patch in JSON.
func PatchTouches(contentType string, data []byte, fields [][]string) bool {
	mediaType := MediaType(contentType)
	switch mediaType {
	case jsonPatchType, mergePatchType, strategicPatchType:
	default:
		return false
	}
	if !json.Valid(data) {
		return false
	}
	if mediaType == jsonPatchType {
		return jsonPatchTouches(data, fields)
	}
	for _, field := range fields {
		if mergePatchTouches(data, document(data), field) {
			return true
		}
	}
	return false
}

// mergePatchTouches is for merge patches and strategic ones. What is no object replaces all that is there.
func mergePatchTouches(data []byte, value span, field []string) bool {
	if len(field) == 0 || data[value.start] != '{' {
		return true
	}
	for m := range members(data, value) {
		name := jsonString(data, m.name)
		// Directives ("$patch: replace", "$retainKeys", "$setElementOrder/...") may reach any field.
		if bytes.HasPrefix(name, []byte("$")) || isField(name, field[0]) && mergePatchTouches(data, m.value, field[1:]) {
			return true
		}
	}
	return false
}

// jsonPatchTouches looks at every "path" and "from".
func jsonPatchTouches(data []byte, fields [][]string) bool {
	for operation := range elements(data, document(data)) {
		for m := range members(data, operation) {
			if data[m.value.start] != '"' || !isName(data, m.name, "path") && !isName(data, m.name, "from") {
				continue
			}
			if pointerTouches(jsonString(data, m.value), fields) {
				return true
			}
		}
	}
	return false
}

// pointerTouches reports whether the pointer leads to one of the fields, into it, or to what it is in. There are at most 64
// fields.
func pointerTouches(pointer []byte, fields [][]string) bool {
	depth, left := 0, ^uint64(0)>>(64-len(fields)) // the fields that agree so far
	for segment := range segments(pointer) {
		for i, field := range fields {
			switch {
			case left&(1<<i) == 0:
			case len(field) == depth:
				return true
			case !isField(segment, field[depth]):
				left &^= 1 << i
			}
		}
		if left == 0 {
			return false
		}
		depth++
	}
	return left != 0
}

// isField does not trust that every decoder upstream minds the case.
func isField(name []byte, field string) bool { return strings.EqualFold(field, string(name)) }
