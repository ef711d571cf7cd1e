// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// maxJSONDepth is where encoding/json, and so kube-apiserver, gives up. The decoder's own tokens have no such limit, and
// 3 MiB of opening brackets would cost ten times as much memory.
const maxJSONDepth = 10_000

var errTooDeep = errors.New("nested too deeply")

// jsonCarries looks at every occurrence of a revision, since with duplicate keys decoders differ in which one they take.
func jsonCarries(body []byte) bool { return walkJSON(body, revisionPaths) }

// walkJSON reads one value and reports whether a view revision is at one of the paths in it. The empty path is the value
// itself. It reads on after malformed input no further than the decoder does, and keeps nothing of what it reads.
func walkJSON(body []byte, paths [][]string) bool {
	found, _ := walkValue(newJSONDecoder(body), paths)
	return found
}

func newJSONDecoder(body []byte) *json.Decoder {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return decoder
}

func walkValue(decoder *json.Decoder, paths [][]string) (bool, error) {
	if len(paths) == 0 {
		return false, skipValue(decoder)
	}
	token, err := decoder.Token()
	if err != nil {
		return false, err
	}
	switch value := token.(type) {
	case json.Delim:
		if value == '[' {
			return false, skipRest(decoder)
		}
		for decoder.More() {
			name, err := readKey(decoder)
			if err != nil {
				return false, err
			}
			var below [][]string
			for _, path := range paths {
				if len(path) > 0 && path[0] == name {
					below = append(below, path[1:])
				}
			}
			if found, err := walkValue(decoder, below); found || err != nil {
				return found, err
			}
		}
		_, err := decoder.Token() // the closing brace
		return false, err
	case string:
		return reaches(paths) && isViewRevision(value), nil
	case json.Number:
		return reaches(paths) && isViewRevision(value.String()), nil
	}
	return false, nil
}

func reaches(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 })
}

func readKey(decoder *json.Decoder) (string, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", err
	}
	name, _ := token.(string)
	return name, nil
}

func skipValue(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	return skipRestOf(decoder, token)
}

// skipRestOf reads to the end of the value that starts with token.
func skipRestOf(decoder *json.Decoder, token json.Token) error {
	if delim, ok := token.(json.Delim); ok && (delim == '{' || delim == '[') {
		return skipRest(decoder)
	}
	return nil
}

// skipRest reads to the end of the array or object that has just been opened.
func skipRest(decoder *json.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxJSONDepth {
				return errTooDeep
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// patchOperation is one of a JSON patch (RFC 6902), as far as it matters here.
type patchOperation struct {
	path     string   // the last one: that one counts
	pointers []string // every "path" and "from"
	value    json.RawMessage
}

// visitJSONPatch calls visit for each operation, until it returns true or the body is at its end or malformed. It reports
// whether visit returned true. One operation is in memory at a time.
func visitJSONPatch(body []byte, visit func(patchOperation) bool) bool {
	decoder := newJSONDecoder(body)
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return false
	}
	for decoder.More() {
		operation, err := readOperation(decoder)
		if err != nil {
			return false
		}
		if visit(operation) {
			return true
		}
	}
	return false
}

func readOperation(decoder *json.Decoder) (patchOperation, error) {
	var operation patchOperation
	token, err := decoder.Token()
	if err != nil || token != json.Delim('{') {
		if err == nil {
			err = skipRestOf(decoder, token)
		}
		return operation, err
	}
	for decoder.More() {
		name, err := readKey(decoder)
		if err != nil {
			return operation, err
		}
		switch name { // as the patch library reads it: names are case sensitive
		case "path", "from":
			var token json.Token
			if token, err = decoder.Token(); err != nil {
				return operation, err
			}
			if pointer, ok := token.(string); ok {
				operation.pointers = append(operation.pointers, pointer)
				if name == "path" {
					operation.path = pointer
				}
			}
			err = skipRestOf(decoder, token)
		case "value":
			var value json.RawMessage // keeps operation off the heap
			err = decoder.Decode(&value)
			operation.value = value
		default:
			err = skipValue(decoder)
		}
		if err != nil {
			return operation, err
		}
	}
	_, err = decoder.Token() // the closing brace
	return operation, err
}

// segmentsOf returns the keys in a JSON pointer (RFC 6901), none for the whole document. kube-apiserver's patch library
// ignores what is before the first slash.
func segmentsOf(pointer string) []string {
	if pointer == "" {
		return nil
	}
	if _, after, ok := strings.Cut(pointer, "/"); ok {
		pointer = after
	}
	segments := strings.Split(pointer, "/")
	for i, segment := range segments {
		segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
	}
	return segments
}
