// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// smaller translates every revision of the view to one that is none.
func smaller(revision string) (string, bool) {
	value, err := strconv.ParseUint(revision, 10, 64)
	return strconv.FormatUint(value%MinViewRevision, 10), err == nil
}

func addSeeds(f *testing.F) {
	revision := viewRevision
	contentTypes := []string{"", "application/json", yamlType, jsonPatchType, mergePatchType, protobufType, "application/cbor", "application/x-protobuf", "a/b;"}
	for _, body := range []string{
		`{"kind":"Service","metadata":{"resourceVersion":"1800000000000000"}}`,
		`{"preconditions":{"resourceVersion":"1800000000000000"},"x":[{}],"dryRun":["All"]}`,
		`{"metadata":{"resourc\u0065Version":"180000000000000\u0030","resourceVersion":"1900000000000001"},"metadata":{}}`,
		`[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"}]`,
		`[{"op":"replace","path":"/metadata","value":{"resourceVersion":"1800000000000000"}},{"op":"move","from":"/a"}]`,
		`{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"object":{"metadata":{"resourceVersion":"8"}}}]}`,
		`{"kind":"Status","status":"Success","details":{"name":"a"}}`,
		`{"kind":"Namespace","metadata":{"resourceVersion":"000000000000000000000","deletionTimestamp":"x","finalizers":[]},"spec":{"finalizers":["a"]}}`,
		"{\"metadata\":{\"resourceVersion\":\"\x80\"}}",
		"metadata:\n  resourceVersion: '1800000000000000'\n",
		"kind: Table\nmetadata: &m {resourceVersion: '1800000000000000'}\nrows:\n- object: {metadata: *m}\n",
		"a: &1800000000000000 \"\\x31800000000000000\"\nmetadata: {resourceVersion: *1800000000000000}",
		utf16Of("metadata: {resourceVersion: '1800000000000000'}"),
		protobufBody(f, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: revision}}),
		protobufBody(f, "ServiceList", &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: revision}, Items: []corev1.Service{{}}}),
		protobufBody(f, "DeleteOptions", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}}),
		cborBody(f, map[string]any{"metadata": map[string]any{"resourceVersion": revision}}),
	} {
		for _, contentType := range contentTypes {
			f.Add(contentType, []byte(body))
		}
	}
}

func FuzzTranslate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		body := string(data)
		kind := encodingOf(contentType)
		PatchTouches(contentType, data, filteredFields)
		IsDryRun(contentType, data)
		Precondition(contentType, data)

		unread := kind == cborEncoding || kind == opaqueEncoding
		if got, err := edit(t, contentType, body, same); got != body || err != nil && !unread {
			t.Fatalf("translated to itself: got %q, %v", got, err)
		}
		got, err := edit(t, contentType, body, smaller)
		if err != nil {
			if !errors.Is(err, ErrNotEditable) || kind != yamlEncoding && !unread {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again, err := edit(t, contentType, got, func(revision string) (string, bool) {
			t.Errorf("%s is left in %q", revision, got)
			return "", false
		}); again != got || err != nil {
			t.Fatalf("again: got %q, %v", again, err)
		}
		switch kind {
		case jsonEncoding:
			equalButForRevisions(t, body, got, jsonDecoded)
		case yamlEncoding:
			equalButForRevisions(t, body, got, yamlDecoded)
		case protobufEncoding:
			checkProtobuf(t, body, got)
		}
	})
}

func jsonDecoded(text string) (value any, ok bool) {
	converted, ok := toJSON(jsonEncoding, []byte(text))
	if !ok {
		return nil, false
	}
	return value, json.Unmarshal(converted, &value) == nil
}

func yamlDecoded(text string) (value any, ok bool) {
	return value, yaml.Unmarshal([]byte(text), &value) == nil
}

// equalButForRevisions compares what decoders that build the whole document make of it.
func equalButForRevisions(t *testing.T, before, after string, decode func(string) (any, bool)) {
	t.Helper()
	want, ok := decode(before)
	if !ok {
		return
	}
	if object, ok := want.(map[string]any); ok {
		for _, key := range []string{"metadata", "preconditions"} {
			inner, _ := object[key].(map[string]any)
			if revision, ok := inner["resourceVersion"].(string); ok && IsViewRevision(revision) && decodesDigits(before) {
				inner["resourceVersion"], _ = smaller(revision)
			}
		}
	}
	got, ok := decode(after)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%q became %q: %t (-want +got)\n%s", before, after, ok, diff)
	}
}

// decodesDigits is whether a document is looked into at all.
func decodesDigits(text string) bool {
	return len(text) <= maxCostlyBody && (hasDigits([]byte(text)) || hasEscapedDigit([]byte(text)) || mayHideDigits([]byte(text)))
}

func checkProtobuf(t *testing.T, before, after string) {
	t.Helper()
	want, ok := serviceIn(before)
	if !ok || want.kind != "Service" {
		return
	}
	if IsViewRevision(want.object.ResourceVersion) && want.plain {
		want.object.ResourceVersion, _ = smaller(want.object.ResourceVersion)
	}
	got, ok := serviceIn(after)
	if !ok || !reflect.DeepEqual(want, got) {
		t.Errorf("%q became %q", before, after)
	}
}

type decodedService struct {
	kind   string
	plain  bool // the envelope has no encoding of its own
	object corev1.Service
}

// serviceIn decodes a body as kube-apiserver does.
func serviceIn(body string) (decoded decodedService, ok bool) {
	text, ok := strings.CutPrefix(body, protobufMagic)
	var envelope runtime.Unknown
	if !ok || envelope.Unmarshal([]byte(text)) != nil {
		return decoded, false
	}
	decoded.kind, decoded.plain = envelope.Kind, envelope.ContentEncoding == "" && envelope.ContentType == ""
	return decoded, decoded.object.Unmarshal(envelope.Raw) == nil
}

func FuzzTranslateAnswer(f *testing.F) {
	addSeeds(f)
	longer := func(revision string) (string, bool) { return "1" + revision, true }
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		body := string(data)
		if got, _ := TranslateAnswer(contentType, data, same); string(got) != body {
			t.Fatalf("translated to itself: got %q", got)
		}
		edited, ok := TranslateAnswer(contentType, data, longer)
		if string(data) != body || !ok && string(edited) != body {
			t.Fatalf("%t: %q became %q, was %q", ok, data, edited, body)
		}
		want, readable := ReadAnswer(contentType, data)
		if !ok || !readable {
			return
		}
		if encodingOf(contentType) != protobufEncoding && !utf8.Valid(data) {
			return // what is no text of JSON is not kept when it becomes part of a new one
		}
		got, readable := ReadAnswer(contentType, edited)
		if want.Kind != statusKind {
			inYAML := encodingOf(contentType) == yamlEncoding
			edit := func(item *Item) {
				number := leadingDigits([]byte(item.ResourceVersion)) == len(item.ResourceVersion) // in YAML nothing else is edited
				if item.ResourceVersion != "" && len(item.ResourceVersion) <= maxRevision && (number || !inYAML) {
					item.ResourceVersion = "1" + item.ResourceVersion
				}
			}
			edit(&want.Item)
			for i := range want.Items {
				if want.Kind == tableKind && encodingOf(contentType) != protobufEncoding {
					edit(&want.Items[i])
				}
			}
		}
		if diff := cmp.Diff(want, got); !readable || diff != "" {
			t.Errorf("%q became %q: %t (-want +got)\n%s", body, edited, readable, diff)
		}
	})
}
