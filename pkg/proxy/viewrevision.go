// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v2" // the parser behind sigs.k8s.io/yaml, and so kube-apiserver's
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

const (
	jsonPatchType = "application/json-patch+json"
	protobufType  = "application/vnd.kubernetes.protobuf"

	// viewRevisionDigits is the length of MinViewRevision in decimal.
	viewRevisionDigits = 16

	// maxCostlyBody is the size up to which YAML (that is not JSON) and CBOR are parsed. Their parsers build the whole
	// document: 3 MiB of "[a,a,a" cost 331 MiB and 0.95 s. This is room for a slice of 1,000 endpoints in YAML.
	maxCostlyBody = 256 * 1024
)

// revisionPaths are the places in a body that hold a revision as a precondition: that of an object, whole or as a patch,
// and that of a DeleteOptions. Both are looked for in every body, so that the answer does not depend on the method.
var revisionPaths = [][]string{
	{"metadata", "resourceVersion"},
	{"preconditions", "resourceVersion"},
}

// errNotInspectable: the encoding cannot be read here.
var errNotInspectable = errors.New("encoding cannot be inspected")

// inspector looks for revisions of the view in bodies. Safe for concurrent use.
type inspector struct {
	// costly admits one body at a time to the parsers that need much memory. Its capacity is one.
	costly chan struct{}
}

func newInspector() *inspector { return &inspector{costly: make(chan struct{}, 1)} }

// carries reports whether a body of the given Content-Type names a revision of the view as a precondition. It does so to
// explain what upstream could only answer with a conflict (upstream compares revisions for equality), so when in doubt it
// says no: nothing breaks if a revision of the view does go upstream, while a write that names none must never be refused.
//
//   - Whatever has no 16 digits in a row is not parsed, unless escapes may hide them. Forms that hide them otherwise go
//     upstream: YAML in UTF-16 or with !!binary, chunked strings in CBOR. Numbers in other forms (hexadecimal, with
//     underscores, binary) do too; upstream refuses a number in this place anyway.
//   - YAML and CBOR above maxCostlyBody go upstream. JSON under a YAML content type is read as JSON, at any size.
//   - A body that is not well formed carries none: upstream answers for it. So it does for an encoding that it cannot know
//     either; errNotInspectable is for one that upstream might read and this function cannot.
//
// The error is that of ctx if it ends while other bodies are being parsed.
func (i *inspector) carries(ctx context.Context, contentType string, body []byte) (bool, error) {
	mediaType := mediaTypeOf(contentType)
	digits := hasDigits(body)
	switch {
	case mediaType == jsonPatchType:
		return (digits || hasEscapedDigit(body)) && jsonPatchCarries(body), nil
	case mediaType == "", mediaType == "application/json", strings.HasSuffix(mediaType, "+json"):
		return (digits || hasEscapedDigit(body)) && jsonCarries(body), nil
	case mediaType == "application/yaml", strings.HasSuffix(mediaType, "+yaml"):
		switch {
		case !digits && bytes.IndexByte(body, '\\') < 0:
			return false, nil
		case json.Valid(body):
			return jsonCarries(body), nil
		}
		return i.parse(ctx, body, yamlCarries)
	case mediaType == protobufType:
		return digits && protobufCarries(body), nil
	case !digits:
		return false, nil
	case mediaType == "application/cbor", strings.HasSuffix(mediaType, "+cbor"):
		return i.parse(ctx, body, cborCarries)
	case strings.HasSuffix(mediaType, "protobuf"):
		return false, errNotInspectable
	}
	return false, nil
}

func (i *inspector) parse(ctx context.Context, body []byte, carries func([]byte) (bool, error)) (bool, error) {
	if len(body) > maxCostlyBody {
		return false, nil
	}
	select {
	case i.costly <- struct{}{}:
		defer func() { <-i.costly }()
		return carries(body)
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// mediaTypeOf returns the type in a Content-Type in lower case, without parameters.
func mediaTypeOf(contentType string) string {
	mediaType := contentType
	if parsed, _, err := mime.ParseMediaType(contentType); err == nil {
		mediaType = parsed
	} else if before, _, ok := strings.Cut(contentType, ";"); ok {
		// kube-apiserver cuts the type of a patch at the semicolon, whatever follows.
		mediaType = before
	}
	return strings.ToLower(strings.TrimSpace(mediaType))
}

// hasDigits reports whether body has as many ASCII digits in a row as a revision of the view.
func hasDigits(body []byte) bool {
	run := 0
	for _, c := range body {
		if c < '0' || c > '9' {
			run = 0
		} else if run++; run == viewRevisionDigits {
			return true
		}
	}
	return false
}

// escapedDigit is how JSON may write a digit (U+0030 to U+0039) but for the last character.
var escapedDigit = []byte(`\u003`)

func hasEscapedDigit(body []byte) bool {
	for {
		_, after, ok := bytes.Cut(body, escapedDigit)
		if !ok {
			return false
		}
		if len(after) > 0 && after[0] >= '0' && after[0] <= '9' {
			return true
		}
		body = after
	}
}

func isViewRevision(value string) bool {
	revision, err := strconv.ParseUint(value, 10, 64)
	return err == nil && revision >= MinViewRevision
}

// jsonPatchCarries looks at the operations that have a value (add, replace, test): at the revision itself, or at
// something around it that contains one.
func jsonPatchCarries(body []byte) bool {
	return visitJSONPatch(body, func(operation patchOperation) bool {
		if operation.value == nil || len(operation.pointers) == 0 {
			return false
		}
		var below [][]string
		for _, path := range revisionPaths {
			if rest, ok := pathBelow(operation.path, path); ok {
				below = append(below, rest)
			}
		}
		return walkJSON(operation.value, below)
	})
}

// pathBelow returns what is left of path below a JSON pointer, false if path is not at or below it.
func pathBelow(pointer string, path []string) ([]string, bool) {
	segments := segmentsOf(pointer)
	if len(segments) > len(path) {
		return nil, false
	}
	for i, segment := range segments {
		if segment != path[i] {
			return nil, false
		}
	}
	return path[len(segments):], true
}

// revisions is what a YAML document is decoded into. All else in it is passed over, aliases of large values too.
type revisions struct {
	Metadata struct {
		ResourceVersion string `yaml:"resourceVersion"`
	} `yaml:"metadata"`
	Preconditions struct {
		ResourceVersion string `yaml:"resourceVersion"`
	} `yaml:"preconditions"`
}

func yamlCarries(body []byte) (bool, error) {
	var document revisions
	_ = yaml.Unmarshal(body, &document) // what is of another type elsewhere does not matter
	return isViewRevision(document.Metadata.ResourceVersion) || isViewRevision(document.Preconditions.ResourceVersion), nil
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
