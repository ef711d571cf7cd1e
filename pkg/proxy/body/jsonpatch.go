// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// editJSONPatch translates the revisions in the values of a JSON patch (RFC 6902): of operations on the revision itself,
// and on something around it that contains one.
func editJSONPatch(data []byte, revisions *translator) []byte {
	result := splice{source: data}
	for operation := range elements(data, document(data)) {
		path, ok := editedPath(data, operation)
		if !ok {
			continue
		}
		for m := range members(data, operation) {
			if isName(data, m.name, "value") {
				editJSONValue(&result, m.value, path, revisions)
			}
		}
	}
	return result.result()
}

// editedPath returns where revisions are in the value of an operation, false if it has no value that counts. Names are case
// sensitive and the last one counts, as in the patch library of kube-apiserver.
func editedPath(data []byte, operation span) (jsonPath, bool) {
	var pointer []byte
	hasPointer, hasValue := false, false
	for m := range members(data, operation) {
		switch {
		case isName(data, m.name, "op"):
			hasValue = data[m.value.start] == '"' && (isName(data, m.value, "add") ||
				isName(data, m.value, "replace") || isName(data, m.value, "test"))
		case isName(data, m.name, "path"):
			pointer = jsonString(data, m.value)
			hasPointer = pointer != nil
		}
	}
	if !hasPointer || !hasValue {
		return nil, false
	}
	path := preconditionPath
	for segment := range segments(pointer) {
		if len(path) == 0 || !slices.Contains(path[0], string(segment)) {
			return nil, false
		}
		path = path[1:]
	}
	return path, true
}

// segments returns the keys in a JSON pointer (RFC 6901), none for the whole document. kube-apiserver's patch library ignores
// what is before the first slash.
func segments(pointer []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(pointer) == 0 {
			return
		}
		rest := pointer
		if _, after, ok := bytes.Cut(rest, []byte("/")); ok {
			rest = after
		}
		for more := true; more; {
			var segment []byte
			segment, rest, more = bytes.Cut(rest, []byte("/"))
			if bytes.IndexByte(segment, '~') >= 0 {
				segment = []byte(strings.NewReplacer("~1", "/", "~0", "~").Replace(string(segment)))
			}
			if !yield(segment) {
				return
			}
		}
	}
}
