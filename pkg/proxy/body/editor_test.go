// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edit runs Translate, and checks what holds for every body.
func edit(t testing.TB, contentType, body string, translate func(string) (string, bool)) (string, error) {
	t.Helper()
	data := []byte(body)
	edited, err := NewEditor().Translate(t.Context(), contentType, data, translate)
	if string(data) != body {
		t.Errorf("the body was modified: %q", data)
	}
	if err != nil && string(edited) != body {
		t.Errorf("edited in spite of the error: %q", edited)
	}
	if string(edited) == body && len(data) > 0 && &edited[0] != &data[0] {
		t.Error("copied without a change")
	}
	return string(edited), err
}

func TestTranslateJSON(t *testing.T) {
	const unchanged = "unchanged"
	object := func(revision string) string {
		return fmt.Sprintf(`{"kind":"Service","metadata":{"name":"web","resourceVersion":%q},"spec":{}}`, revision)
	}
	tests := []struct{ name, contentType, body, want string }{
		{"object", "application/json", object(viewRevision), object(upstreamRevision)},
		{"object with an upstream revision", "application/json", object(upstreamRevision), unchanged},
		{"object with an empty revision", "application/json", object(""), unchanged},
		{"more than 64 bits", "application/json", object("99999999999999999999999"), unchanged},
		{"one that translate leaves", "application/json", object("1800000000000001"), unchanged},
		{"leading zeros", "application/json", object("000" + viewRevision), object(upstreamRevision)},
		{"sign", "application/json", object("+" + viewRevision), unchanged},
		{"no content type is JSON", "", object(viewRevision), object(upstreamRevision)},
		{"parameters of the content type", "application/json; charset=utf-8", object(viewRevision), object(upstreamRevision)},
		{"upper case content type", "Application/JSON", object(viewRevision), object(upstreamRevision)},
		{"broken parameters", "application/merge-patch+json; charset", object(viewRevision), object(upstreamRevision)},
		{"number", "application/json", `{"metadata":{"resourceVersion":1800000000000000}}`, unchanged},
		{"null, word and list", "application/json", `{"metadata":{"resourceVersion":null,"resourceVersion":true,"resourceVersion":["1800000000000000"]}}`, unchanged},
		{"duplicate key", "application/json", `{"metadata":{"resourceVersion":"1800000000000000","resourceVersion":"1","resourceVersion":"1800000000000000"}}`,
			`{"metadata":{"resourceVersion":"123456","resourceVersion":"1","resourceVersion":"123456"}}`},
		{"duplicate metadata", "application/json", `{"metadata":{"resourceVersion":"1"},"metadata":{"resourceVersion":"1800000000000000"}}`,
			`{"metadata":{"resourceVersion":"1"},"metadata":{"resourceVersion":"123456"}}`},
		{"escaped names", "application/json", `{"\u006detadat\u0061":{"resourc\u0065Version":"1800000000000000"}}`,
			`{"\u006detadat\u0061":{"resourc\u0065Version":"123456"}}`},
		{"escaped digits", "application/json", `{"metadata":{"resourceVersion":"180000000000000\u0030"}}`, `{"metadata":{"resourceVersion":"123456"}}`},
		{"escaped digits alone", "application/json", `{"metadata":{"resourceVersion":"\u0031\u0038` + strings.Repeat(`\u0030`, 14) + `"}}`, `{"metadata":{"resourceVersion":"123456"}}`},
		{"escape of something else", "application/json", `{"metadata":{"resourceVersion":"12","annotations":{"a":"\u003cb\u003e \u003"}}}`, unchanged},
		{"white space and order", "application/json", " {\n\t\"spec\" : { \"a\" : [ 1 , { } , \"]}\\\"\" ] } ,\r\n \"metadata\" :\n{ \"labels\":{} , \"resourceVersion\" : \"1800000000000000\" , \"x\" : -1.5e3 } } \n",
			" {\n\t\"spec\" : { \"a\" : [ 1 , { } , \"]}\\\"\" ] } ,\r\n \"metadata\" :\n{ \"labels\":{} , \"resourceVersion\" : \"123456\" , \"x\" : -1.5e3 } } \n"},
		{"name in another case", "application/json", `{"metadata":{"ResourceVersion":"1800000000000000"}}`, unchanged},
		{"elsewhere: annotation", "application/json", `{"metadata":{"annotations":{"resourceVersion":"1800000000000000"}}}`, unchanged},
		{"elsewhere: deeper metadata", "application/json", `{"spec":{"metadata":{"resourceVersion":"1800000000000000"}}}`, unchanged},
		{"elsewhere: target reference", "application/json", `{"subsets":[{"addresses":[{"targetRef":{"resourceVersion":"1800000000000000"}}]}]}`, unchanged},
		{"elsewhere: label", "application/json", `{"metadata":{"labels":{"a":"1800000000000000"},"resourceVersion":"1"}}`, unchanged},
		{"metadata is an array", "application/json", `{"metadata":["resourceVersion","1800000000000000"]}`, unchanged},
		{"the document is a string", "application/json", `"1800000000000000"`, unchanged},
		{"the document is a list", "application/json", `[{"metadata":{"resourceVersion":"1800000000000000"}}]`, unchanged},
		{"not JSON", "application/json", `hello 1800000000000000`, unchanged},
		{"cut off", "application/json", `{"metadata":{"resourceVersion":"1800000000000000"`, unchanged},
		{"more behind it", "application/json", object(viewRevision) + "x", unchanged},
		{"empty", "application/json", "", unchanged},
		{"a type that upstream does not know", "text/plain", object(viewRevision), unchanged},

		{"merge patch", mergePatchType, object(viewRevision), object(upstreamRevision)},
		{"strategic merge patch", strategicPatchType, object(viewRevision), object(upstreamRevision)},
		{"strategic merge patch without", strategicPatchType, `{"metadata":{"labels":{"a":"1800000000000000"}}}`, unchanged},
		{"DeleteOptions", "application/json", `{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"1800000000000000"}}`,
			`{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"123456"}}`},
		{"DeleteOptions upstream", "application/json", `{"kind":"DeleteOptions","preconditions":{"resourceVersion":"18"}}`, unchanged},
		{"JSON as YAML", "application/yaml", object(viewRevision), object(upstreamRevision)},
		{"JSON as an apply patch", "application/apply-patch+yaml", object(viewRevision), object(upstreamRevision)},
		{"JSON with an escape as YAML", "application/apply-patch+yaml", `{"metadata":{"resourceVersion":"180000000000000\u0030"}}`, `{"metadata":{"resourceVersion":"123456"}}`},
		{"large JSON as YAML", "application/yaml", `{"a":"` + strings.Repeat("x", 2*maxCostlyBody) + `","metadata":{"resourceVersion":"1800000000000000"}}`,
			`{"a":"` + strings.Repeat("x", 2*maxCostlyBody) + `","metadata":{"resourceVersion":"123456"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == unchanged {
				tt.want = tt.body
			}
			got, err := edit(t, tt.contentType, tt.body, toUpstream)
			if err != nil || got != tt.want {
				t.Errorf("error %v, got\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
}

func TestReplacementIsWrittenAsAString(t *testing.T) {
	got, err := edit(t, "", `{"metadata":{"resourceVersion":"1800000000000000"}}`, func(string) (string, bool) { return "a\"\\\n", true })
	if want := `{"metadata":{"resourceVersion":"a\"\\\n"}}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Whatever else the decoded document holds is the same after an edit, and so are the bytes around the value.
func TestEditedJSONDecodesToTheSameButTheRevision(t *testing.T) {
	bodies := []string{
		`{"metadata":{"resourceVersion":"@"}}`,
		`{"a":"@","metadata":{"annotations":{"resourceVersion":"@"},"resourceVersion":"@"},"preconditions":{"resourceVersion":"@"}}`,
		"{\"x\":[{\"metadata\":{\"resourceVersion\":\"@\"}}],\n\"metadata\":{\"a\":1e400,\"resourceVersion\":\"@\",\"n\":12345678901234567890}}",
	}
	for _, body := range bodies {
		original := strings.ReplaceAll(body, "@", viewRevision)
		got, err := edit(t, "application/json", original, toUpstream)
		if err != nil {
			t.Fatal(err)
		}
		want := decodeJSON(t, original)
		for _, key := range []string{"metadata", "preconditions"} {
			if object, ok := want.(map[string]any)[key].(map[string]any); ok {
				object["resourceVersion"] = upstreamRevision
			}
		}
		if diff := cmp.Diff(want, decodeJSON(t, got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", original, diff)
		}
	}
}

func decodeJSON(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTranslateJSONPatch(t *testing.T) {
	tests := []struct {
		name, body string
		edited     bool
	}{
		{"test", `[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"}]`, true},
		{"replace", `[ {"value" : "1800000000000000", "op":"replace","path":"/metadata/resourceVersion", "x": [{}]} ]`, true},
		{"later operation", `[{"op":"remove","path":"/spec"},{"op":"add","path":"/metadata","value":{"resourceVersion":"1800000000000000"}}]`, true},
		{"two operations", `[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"},{"op":"test","path":"/metadata","value":{"resourceVersion":"1800000000000000"}}]`, true},
		{"the whole", `[{"op":"replace","path":"","value":{"metadata":{"resourceVersion":"1800000000000000"}}}]`, true},
		{"two values", `[{"op":"test","value":"1800000000000000","path":"/metadata/resourceVersion","value":"1800000000000000"}]`, true},
		{"without the first slash", `[{"op":"test","path":"x/metadata/resourceVersion","value":"1800000000000000"}]`, true},
		{"the last path counts", `[{"op":"test","path":"/a","value":"1800000000000000","path":"/metadata/resourceVersion"}]`, true},
		{"the first path does not", `[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000","path":"/a"}]`, false},
		{"escapes", `[{"\u006fp":"t\u0065st","pat\u0068":"\u002fmetadata\/resourceVersion","v\u0061lue":"1800000000000000"}]`, true},
		{"upstream revision", `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"test","path":"/a","value":"1800000000000000"}]`, false},
		{"number", `[{"op":"test","path":"/metadata/resourceVersion","value":1800000000000000}]`, false},
		{"elsewhere", `[{"op":"add","path":"/metadata/annotations/resourceVersion","value":"1800000000000000"}]`, false},
		{"elsewhere in a value", `[{"op":"add","path":"/metadata/annotations","value":{"resourceVersion":"1800000000000000"}}]`, false},
		{"below", `[{"op":"add","path":"/metadata/resourceVersion/x","value":"1800000000000000"}]`, false},
		{"a trailing slash", `[{"op":"add","path":"/metadata/resourceVersion/","value":"1800000000000000"}]`, false},
		{"copy", `[{"op":"copy","from":"/a","path":"/metadata/resourceVersion","value":"1800000000000000"}]`, false},
		{"no operation", `[{"path":"/metadata/resourceVersion","value":"1800000000000000"}]`, false},
		{"path that is none", `[{"op":"test","path":["/metadata/resourceVersion"],"value":{"metadata":{"resourceVersion":"1800000000000000"}}},5,"1800000000000000",[]]`, false},
		{"no list", `{"metadata":{"resourceVersion":"1800000000000000"}}`, false},
		{"malformed", `[{"op":"test","path":"/metadata/resourceVersion","value":"1800000000000000"}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.body
			if tt.edited {
				want = translated(want)
			}
			if got, err := edit(t, jsonPatchType, tt.body, toUpstream); err != nil || got != want {
				t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
	const hidden = `[{"op":"test","path":"/metadata/resourceVersion","value":"18000000\u00300000000"}]`
	if got, err := edit(t, jsonPatchType, hidden, toUpstream); err != nil || got != `[{"op":"test","path":"/metadata/resourceVersion","value":"123456"}]` {
		t.Errorf("hidden digits: %s, %v", got, err)
	}
}

func TestCostlyBodiesAreParsedOneAtATime(t *testing.T) {
	editor := NewEditor()
	editor.costly <- struct{}{} // one is being parsed
	busy := errors.New("busy")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(busy)
	tests := []struct {
		name, contentType, body string
		want                    error
	}{
		{"YAML", "application/yaml", "a: [b]\nc: 1800000000000000", busy},
		{"CBOR", "application/cbor", cborBody(t, map[string]any{"a": viewRevision}), busy},
		{"YAML without digits", "application/yaml", "a: [b]\n", nil},
		{"YAML that is JSON", "application/apply-patch+yaml", `{"a":1800000000000000}`, nil},
		{"YAML that is too large", "application/yaml", "a: 1800000000000000\n" + strings.Repeat("#", maxCostlyBody), nil},
		{"JSON", "application/json", `{"a":1800000000000000}`, nil},
		{"protobuf", protobufType, protobufBody(t, "Service", rawMessage("\x0a\x12\x0a\x10"+viewRevision)), nil},
	}
	for _, tt := range tests {
		if got, err := editor.Translate(ctx, tt.contentType, []byte(tt.body), toUpstream); !errors.Is(err, tt.want) || !bytes.Equal(got, []byte(tt.body)) {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
	}
	<-editor.costly
	for _, tt := range tests {
		if _, err := editor.Translate(t.Context(), tt.contentType, []byte(tt.body), toUpstream); err != nil {
			t.Errorf("%s, not busy: %v", tt.name, err)
		}
		if len(editor.costly) != 0 {
			t.Fatalf("%s: not given back", tt.name)
		}
	}
}

func TestPrecondition(t *testing.T) {
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}}
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &object.ResourceVersion}}
	for _, tt := range []struct{ name, contentType, body, want string }{
		{"object", "application/json", `{"metadata":{"resourceVersion":"7"}}`, "7"},
		{"no content type", "", `{"metadata":{"resourceVersion":"7"}}`, "7"},
		{"options", "application/json", `{"preconditions":{"uid":"u","resourceVersion":"7"}}`, "7"},
		{"merge patch", mergePatchType, `{"metadata":{"resourceVersion":"7"}}`, "7"},
		{"JSON patch", jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]`, "7"},
		{"apply in JSON", "application/apply-patch+yaml", `{"metadata":{"resourceVersion":"7"}}`, "7"},
		{"protobuf", protobufType, protobufBody(t, "Service", object), "7"},
		{"options in protobuf", protobufType, protobufBody(t, "DeleteOptions", options), "7"},
		{"twice", "", `{"metadata":{"resourceVersion":"6","resourceVersion":"7"}}`, "7"},
		{"revision of the view", "", `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`, viewRevision},
		{"none", "", `{"metadata":{}}`, ""},
		{"a number", "", `{"metadata":{"resourceVersion":7}}`, ""},
		{"too long", "", `{"metadata":{"resourceVersion":"` + strings.Repeat("7", 21) + `"}}`, ""},
		{"items", "", `{"items":[{"metadata":{"resourceVersion":"7"}}]}`, ""},
		{"malformed", "", `{"metadata":{"resourceVersion":"7"}`, ""},
		{"YAML", yamlType, "metadata: {resourceVersion: '7'}", ""}, // not worth a parser
		{"CBOR", "application/cbor", cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}), ""},
	} {
		if got := Precondition(tt.contentType, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
}
