// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

const (
	statusKind    = "Status"
	tableKind     = "Table"
	namespaceKind = "Namespace"
)

// Answer is what an answer says about the object written.
type Answer struct {
	Kind string
	Item
	// Items are the objects in a list, or in the rows of a table.
	Items []Item
}

// Item identifies an object, and its revision.
type Item struct {
	Name, Namespace, UID, ResourceVersion string
	// Ended: the object is being deleted, and has no finalizer left to wait for. Upstream answers so to the write that took
	// the last one away, with the revision from before. In an answer of kind Namespace those of its spec count too;
	// a table and metadata alone do not have them.
	Ended bool
}

// ReadAnswer returns what an answer in JSON, YAML, CBOR or protobuf says; false if it is in another encoding, too large for
// its encoding (see maxCostlyBody), or malformed. A Status names the object in its details, without a namespace
// and a revision. A table of exactly one object stands for that object, but for the kind. Pure.
func ReadAnswer(contentType string, data []byte) (Answer, bool) {
	switch encoding := encodingOf(contentType); encoding {
	case jsonEncoding, yamlEncoding, cborEncoding:
		converted, ok := toJSON(encoding, data)
		if !ok {
			return Answer{}, false
		}
		return readJSONAnswer(converted), true
	case protobufEncoding:
		return readProtobufAnswer(data)
	}
	return Answer{}, false
}

// toJSON returns a document as JSON that is valid.
func toJSON(from encoding, data []byte) ([]byte, bool) {
	if from != cborEncoding && json.Valid(data) {
		return data, true
	}
	if from == jsonEncoding || len(data) > maxCostlyBody {
		return nil, false
	}
	convert := cborToJSON
	if from == yamlEncoding {
		convert = yaml.YAMLToJSON
	}
	converted, err := convert(data)
	return converted, err == nil
}

// TranslateAnswer returns the object in an answer with its revision, whatever it is, replaced by what translate returns for
// it, which may be false to leave it. A text that is too long for a revision stays. In a table this is done to the objects
// in the rows too; a Status is left alone. Like Editor.Translate, it does not modify data, and changes nothing but the
// revision. It returns data and false if the encoding is not known or cannot be edited, or if the answer is malformed. Pure,
// but for translate.
func TranslateAnswer(contentType string, data []byte, translate func(string) (string, bool)) (edited []byte, ok bool) {
	revisions := &translator{translate: translate}
	switch encodingOf(contentType) {
	case jsonEncoding:
		if json.Valid(data) {
			return editJSONAnswer(data, revisions), true
		}
	case yamlEncoding:
		if json.Valid(data) {
			return editJSONAnswer(data, revisions), true
		}
		if len(data) <= maxCostlyBody {
			return editYAMLAnswer(data, revisions)
		}
	case protobufEncoding:
		return editProtobufAnswer(data, revisions)
	}
	return data, false
}
