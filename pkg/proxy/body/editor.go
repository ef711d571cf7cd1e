// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// maxCostlyBody is the size up to which YAML (that is not JSON) and CBOR are parsed. Their parsers build the whole
// document: 3 MiB of "[a,a,a" cost 331 MiB and 0.95 s. This is room for a slice of 1,000 endpoints in YAML.
const maxCostlyBody = 256 * 1024

// ErrNotEditable is for a body that names a revision of the view, or may, in an encoding that cannot be edited here.
var ErrNotEditable = errors.New("the encoding of this body cannot be edited")

// Editor edits the bodies of requests. Safe for concurrent use.
type Editor struct {
	// costly admits one body at a time to the parsers that need much memory. Its capacity is one.
	costly chan struct{}
}

// NewEditor returns an Editor.
func NewEditor() *Editor { return &Editor{costly: make(chan struct{}, 1)} }

// Translate returns data with each revision of the view that stands as a precondition replaced by what translate returns for
// it: in the metadata of an object, whole or as a patch, and in the preconditions of a DeleteOptions. Both are looked for in
// every body, so that the answer does not depend on the method. translate gets the revision in decimal, possibly more than
// once, and returns false to leave it. data is not modified; it is what comes back if nothing changes.
//
//   - Whatever has no 16 digits in a row is not parsed, unless escapes may hide them.
//   - A body that is not well formed comes back as it is: upstream answers for it. So does one in an encoding that upstream
//     cannot know either, a number where a revision should be (upstream refuses it), and a protobuf envelope that names a
//     contentType or contentEncoding of its own.
//   - YAML that is not JSON is edited up to maxCostlyBody (with anchors: maxAnchored), if the revision is written without
//     escapes or aliases. Above that it comes back as it is, unless a line of it holds a resourceVersion of the view. CBOR is
//     never edited.
//
// The error is ErrNotEditable, or the cause of ctx if it ends while other bodies are being parsed.
func (e *Editor) Translate(
	ctx context.Context, contentType string, data []byte, translate func(string) (string, bool),
) ([]byte, error) {
	revisions := &translator{translate: translate, viewOnly: true}
	digits := hasDigits(data)
	switch encodingOf(contentType) {
	case jsonEncoding:
		if (digits || hasEscapedDigit(data)) && json.Valid(data) {
			return editJSON(data, preconditionPath, revisions), nil
		}
	case jsonPatchEncoding:
		if (digits || hasEscapedDigit(data)) && json.Valid(data) {
			return editJSONPatch(data, revisions), nil
		}
	case yamlEncoding:
		switch {
		case !digits && !mayHideDigits(data):
		case json.Valid(data):
			return editJSON(data, preconditionPath, revisions), nil
		case len(data) > maxCostlyBody:
			return data, checkLargeYAML(data, revisions)
		default:
			return e.parse(ctx, data, func() ([]byte, error) { return editYAML(data, revisions) })
		}
	case protobufEncoding:
		if digits {
			return editProtobuf(data, revisions), nil
		}
	case cborEncoding:
		if digits && len(data) <= maxCostlyBody {
			return e.parse(ctx, data, func() ([]byte, error) { return data, checkCBOR(data, revisions) })
		}
	case opaqueEncoding:
		if digits {
			return data, ErrNotEditable
		}
	}
	return data, nil
}

// Precondition returns the revision, of whatever kind, that a body in JSON or protobuf gives as a precondition; the last one if
// there are more. Empty if there is none that can be one, or in another encoding. Pure. It takes no memory to speak of.
func Precondition(contentType string, data []byte) (revision string) {
	note := &translator{translate: func(value string) (string, bool) {
		revision = value
		return "", false
	}}
	switch encodingOf(contentType) {
	case jsonEncoding, yamlEncoding:
		if json.Valid(data) {
			editJSON(data, preconditionPath, note)
		}
	case jsonPatchEncoding:
		if json.Valid(data) {
			editJSONPatch(data, note)
		}
	case protobufEncoding:
		editProtobuf(data, note)
	}
	return revision
}

func (e *Editor) parse(ctx context.Context, data []byte, edit func() ([]byte, error)) ([]byte, error) {
	select {
	case e.costly <- struct{}{}:
		defer func() { <-e.costly }()
		return edit()
	case <-ctx.Done():
		return data, context.Cause(ctx)
	}
}

// checkCBOR returns ErrNotEditable if a document has a revision to translate, or cannot be read.
func checkCBOR(data []byte, revisions *translator) error {
	converted, err := cborToJSON(data)
	if err != nil {
		return ErrNotEditable
	}
	found := false
	visitJSON(converted, span{0, len(converted)}, preconditionPath, func(at span) {
		text := jsonString(converted, at)
		if _, ok := revisions.of(text); ok {
			found = true
		}
	})
	if found {
		return ErrNotEditable
	}
	return nil
}

func cborToJSON(data []byte) ([]byte, error) {
	var value any
	if err := direct.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
