// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"sigs.k8s.io/yaml"
)

const (
	jsonPatchType = "application/json-patch+json"
	protobufType  = "application/vnd.kubernetes.protobuf"
)

// protobufMagic starts every protobuf body of Kubernetes; a runtime.Unknown follows, with the object inside.
var protobufMagic = []byte("k8s\x00")

// revisionPaths are the places in a body that hold a revision as a precondition: that of an object, whole or as a patch,
// and that of a DeleteOptions. Both are looked for in every body, so that the answer does not depend on the method.
var revisionPaths = [][]string{
	{"metadata", "resourceVersion"},
	{"preconditions", "resourceVersion"},
}

// errNotInspectable: the encoding cannot be read here.
var errNotInspectable = errors.New("encoding cannot be inspected")

// carriesViewRevision reports whether a body of the given Content-Type names a revision of the view as a precondition.
// Pure. A body that is not well formed carries none: upstream answers for it. An encoding that upstream would not know
// either is passed by as well; errNotInspectable is for one that upstream might read and this function cannot.
func carriesViewRevision(contentType string, body []byte) (bool, error) {
	mediaType := strings.TrimSpace(contentType)
	if parsed, _, err := mime.ParseMediaType(contentType); err == nil {
		mediaType = parsed
	} else if before, _, ok := strings.Cut(mediaType, ";"); ok {
		// kube-apiserver cuts the type of a patch at the semicolon, whatever follows.
		mediaType = strings.TrimSpace(before)
	}
	mediaType = strings.ToLower(mediaType)
	switch {
	case mediaType == jsonPatchType:
		return jsonPatchCarries(body), nil
	case mediaType == "", mediaType == "application/json", strings.HasSuffix(mediaType, "+json"):
		return jsonCarries(body), nil
	case mediaType == "application/yaml", strings.HasSuffix(mediaType, "+yaml"):
		converted, err := yaml.YAMLToJSON(body)
		return err == nil && jsonCarries(converted), nil
	case mediaType == protobufType:
		return protobufCarries(body), nil
	case mediaType == "application/cbor", strings.HasSuffix(mediaType, "+cbor"):
		return cborCarries(body)
	case strings.HasSuffix(mediaType, "protobuf"):
		return false, errNotInspectable
	}
	return false, nil
}

func isViewRevision(value string) bool {
	revision, err := strconv.ParseUint(value, 10, 64)
	return err == nil && revision >= MinViewRevision
}

// jsonCarries looks at every occurrence of a revision, since with duplicate keys decoders differ in which one they take.
func jsonCarries(body []byte) bool {
	return walkJSON(json.NewDecoder(bytes.NewReader(body)), revisionPaths)
}

// walkJSON reads one value and reports whether a view revision is at one of the paths in it. The empty path is the value
// itself. It reads on after malformed input no further than the decoder does.
func walkJSON(decoder *json.Decoder, paths [][]string) bool {
	decoder.UseNumber()
	found, _ := walkValue(decoder, paths)
	return found
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
			key, err := decoder.Token()
			if err != nil {
				return false, err
			}
			name, _ := key.(string)
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
	for _, path := range paths {
		if len(path) == 0 {
			return true
		}
	}
	return false
}

func skipValue(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
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
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// jsonPatchCarries looks at the operations that have a value (add, replace, test): at the revision itself, or at
// something around it that contains one.
func jsonPatchCarries(body []byte) bool {
	var operations []map[string]json.RawMessage // as the patch library reads it: names are case sensitive
	if err := json.Unmarshal(body, &operations); err != nil {
		return false
	}
	for _, operation := range operations {
		var pointer string
		if json.Unmarshal(operation["path"], &pointer) != nil || operation["value"] == nil {
			continue
		}
		var below [][]string
		for _, path := range revisionPaths {
			if rest, ok := pathBelow(pointer, path); ok {
				below = append(below, rest)
			}
		}
		if walkJSON(json.NewDecoder(bytes.NewReader(operation["value"])), below) {
			return true
		}
	}
	return false
}

// pathBelow returns what is left of path below a JSON pointer (RFC 6901), false if path is not at or below it.
func pathBelow(pointer string, path []string) ([]string, bool) {
	if pointer == "" {
		return path, true
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if len(parts) > len(path) {
		return nil, false
	}
	for i, part := range parts {
		if strings.NewReplacer("~1", "/", "~0", "~").Replace(part) != path[i] {
			return nil, false
		}
	}
	return path[len(parts):], true
}

// protobufCarries decodes the envelope, then what is inside as something that only has metadata (field 1 in Service,
// Endpoints, EndpointSlice and PartialObjectMetadata alike), or as a DeleteOptions. Unknown fields are passed over.
func protobufCarries(body []byte) bool {
	rest, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return false
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return false
	}
	if envelope.Kind == "DeleteOptions" {
		var options metav1.DeleteOptions
		if err := options.Unmarshal(envelope.Raw); err != nil || options.Preconditions == nil {
			return false
		}
		return options.Preconditions.ResourceVersion != nil && isViewRevision(*options.Preconditions.ResourceVersion)
	}
	var object metav1.PartialObjectMetadata
	if err := object.Unmarshal(envelope.Raw); err != nil {
		return false
	}
	return isViewRevision(object.ResourceVersion)
}

func cborCarries(body []byte) (bool, error) {
	var value any
	if err := direct.Unmarshal(body, &value); err != nil {
		return false, errNotInspectable
	}
	converted, err := json.Marshal(value)
	if err != nil {
		return false, errNotInspectable
	}
	return jsonCarries(converted), nil
}
