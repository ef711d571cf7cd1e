// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

const (
	viewRevision     = "1800000000000000"
	upstreamRevision = "123456"
)

func protobufBody(t testing.TB, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(protobufMagic), data...)
}

func cborBody(t testing.TB, value any) []byte {
	t.Helper()
	data, err := direct.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCarriesViewRevision(t *testing.T) {
	view, upstream := viewRevision, upstreamRevision
	object := func(revision string) []byte {
		return fmt.Appendf(nil, `{"kind":"Service","metadata":{"name":"web","resourceVersion":%q},"spec":{}}`, revision)
	}
	preconditions := func(revision string) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}}
	}
	tests := []struct {
		name        string
		contentType string
		body        []byte
		want        bool
	}{
		{"object with a view revision", "application/json", object(view), true},
		{"object with an upstream revision", "application/json", object(upstream), false},
		{"object with an empty revision", "application/json", object(""), false},
		{"smallest view revision", "application/json", object("1000000000000000"), true},
		{"largest upstream revision", "application/json", object("999999999999999"), false},
		{"more than 64 bits", "application/json", object("99999999999999999999999"), false},
		{"no content type is JSON", "", object(view), true},
		{"parameters of the content type", "application/json; charset=utf-8", object(view), true},
		{"upper case content type", "Application/JSON", object(view), true},
		{"broken parameters", "application/merge-patch+json; charset", object(view), true},
		{"number", "application/json", []byte(`{"metadata":{"resourceVersion":1800000000000000}}`), true},
		{"duplicate key, view first", "application/json", []byte(`{"metadata":{"resourceVersion":"1800000000000000","resourceVersion":"1"}}`), true},
		{"duplicate metadata, view last", "application/json", []byte(`{"metadata":{"resourceVersion":"1"},"metadata":{"resourceVersion":"1800000000000000"}}`), true},
		{"escaped name", "application/json", []byte(`{"metadata":{"resourc\u0065Version":"1800000000000000"}}`), true},
		{"elsewhere: annotation", "application/json", []byte(`{"metadata":{"annotations":{"resourceVersion":"1800000000000000"}}}`), false},
		{"elsewhere: deeper metadata", "application/json", []byte(`{"spec":{"metadata":{"resourceVersion":"1800000000000000"}}}`), false},
		{"elsewhere: target reference", "application/json", []byte(`{"subsets":[{"addresses":[{"targetRef":{"resourceVersion":"1800000000000000"}}]}]}`), false},
		{"after arrays and objects", "application/json", []byte(`{"a":[{"b":[1,{}]}],"c":{"d":{}},"metadata":{"labels":{},"resourceVersion":"1800000000000000"}}`), true},
		{"metadata is an array", "application/json", []byte(`{"metadata":["resourceVersion","1800000000000000"]}`), false},
		{"not JSON", "application/json", []byte(`hello`), false},
		{"cut off", "application/json", []byte(`{"metadata":{"resourceVersion":`), false},
		{"empty", "application/json", nil, false},

		{"merge patch", "application/merge-patch+json", object(view), true},
		{"strategic merge patch", "application/strategic-merge-patch+json", object(view), true},
		{"strategic merge patch without", "application/strategic-merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`), false},
		{"apply patch", "application/apply-patch+yaml", []byte("metadata:\n  resourceVersion: \"1800000000000000\"\n"), true},
		{"apply patch in JSON", "application/apply-patch+yaml", object(view), true},
		{"YAML", "application/yaml", []byte("kind: Service\nmetadata:\n  resourceVersion: '1800000000000000'\n"), true},
		{"YAML number", "application/yaml", []byte("metadata:\n  resourceVersion: 1800000000000000\n"), true},
		{"YAML alias", "application/yaml", []byte("x: &m {resourceVersion: '1800000000000000'}\nmetadata: *m\n"), true},
		{"YAML upstream", "application/yaml", []byte("metadata:\n  resourceVersion: '12'\n"), false},
		{"not YAML", "application/yaml", []byte("\t: ["), false},

		{"JSON patch test", "application/json-patch+json", []byte(`[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"}]`), true},
		{"JSON patch replace", "application/json-patch+json", []byte(`[{"op":"replace","path":"/metadata/resourceVersion","value":"1800000000000000"}]`), true},
		{"JSON patch later operation", "application/json-patch+json", []byte(`[{"op":"remove","path":"/spec"},{"op":"add","path":"/metadata","value":{"resourceVersion":"1800000000000000"}}]`), true},
		{"JSON patch of the whole", "application/json-patch+json", []byte(`[{"op":"replace","path":"","value":{"metadata":{"resourceVersion":"1800000000000000"}}}]`), true},
		{"JSON patch upstream revision", "application/json-patch+json", []byte(`[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]`), false},
		{"JSON patch elsewhere", "application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/annotations/resourceVersion","value":"1800000000000000"}]`), false},
		{"JSON patch below", "application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/resourceVersion/x","value":"1800000000000000"}]`), false},
		{"JSON patch copies", "application/json-patch+json", []byte(`[{"op":"copy","from":"/a","path":"/metadata/resourceVersion"}]`), false},
		{"JSON patch that is none", "application/json-patch+json", object(view), false},

		{"DeleteOptions", "application/json", []byte(`{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"1800000000000000"}}`), true},
		{"DeleteOptions upstream", "application/json", []byte(`{"kind":"DeleteOptions","preconditions":{"resourceVersion":"18"}}`), false},
		{"protobuf DeleteOptions", protobufType, protobufBody(t, "DeleteOptions", preconditions(view)), true},
		{"protobuf DeleteOptions upstream", protobufType, protobufBody(t, "DeleteOptions", preconditions(upstream)), false},
		{"protobuf DeleteOptions without", protobufType, protobufBody(t, "DeleteOptions", &metav1.DeleteOptions{}), false},

		{"protobuf Service", protobufType, protobufBody(t, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: view}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}), true},
		{"protobuf Endpoints", protobufType, protobufBody(t, "Endpoints", &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{ResourceVersion: view}, Subsets: []corev1.EndpointSubset{{}}}), true},
		{"protobuf EndpointSlice", protobufType, protobufBody(t, "EndpointSlice", &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{ResourceVersion: view}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}}), true},
		{"protobuf upstream", protobufType, protobufBody(t, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: upstream}}), false},
		{"protobuf without magic", protobufType, []byte("\x0a\x02"), false},
		{"protobuf cut off", protobufType, append(bytes.Clone(protobufMagic), 0x12, 0x7f), false},

		{"CBOR", "application/cbor", cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": view}}), true},
		{"CBOR upstream", "application/cbor", cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": upstream}}), false},
		{"CBOR apply patch", "application/apply-patch+cbor", cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": view}}), true},

		{"a type that upstream does not know", "text/plain", object(view), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newInspector().carries(t.Context(), tt.contentType, tt.body)
			if err != nil || got != tt.want {
				t.Errorf("got %t, %v, want %t", got, err, tt.want)
			}
		})
	}
}

func TestUnreadableEncodingIsReported(t *testing.T) {
	for contentType, body := range map[string]string{
		"application/cbor":             "\xff\xff" + viewRevision,
		"application/apply-patch+cbor": "{" + viewRevision,
		"application/x-protobuf":       "k8s\x00" + viewRevision,
	} {
		if _, err := newInspector().carries(t.Context(), contentType, []byte(body)); !errors.Is(err, errNotInspectable) {
			t.Errorf("%s: error %v", contentType, err)
		}
	}
}

// FuzzCarriesViewRevision compares the token walk with a decoder that builds the whole document: whatever revision that
// one ends up with, the walk must have seen.
func FuzzCarriesViewRevision(f *testing.F) {
	for _, body := range []string{
		`{"metadata":{"resourceVersion":"1800000000000000"}}`,
		`{"preconditions":{"resourceVersion":"1800000000000000"},"x":[{}]}`,
		`[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"}]`,
		"metadata:\n  resourceVersion: '1800000000000000'\n",
		"k8s\x00\x12\x02\x0a\x00",
	} {
		for _, contentType := range []string{"", "application/json", "application/yaml", jsonPatchType, protobufType, "application/cbor", "a/b;"} {
			f.Add(contentType, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		_, _ = newInspector().carries(t.Context(), contentType, body)

		got, err := newInspector().carries(t.Context(), "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]json.RawMessage
		if json.Unmarshal(body, &document) != nil {
			return
		}
		var metadata map[string]json.RawMessage
		if json.Unmarshal(document["metadata"], &metadata) != nil {
			return
		}
		var revision string
		if json.Unmarshal(metadata["resourceVersion"], &revision) == nil && isViewRevision(revision) && !got {
			t.Errorf("missed %s in %q", revision, body)
		}
	})
}
