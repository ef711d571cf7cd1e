// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/json"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var filteredFields = [][]string{{"endpoints"}, {"subsets"}, {"ports"}}

func TestPatchTouches(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		want                    bool
	}{
		{"merge patch of endpoints", mergePatchType, `{"endpoints":[]}`, true},
		{"merge patch of ports", mergePatchType, `{"metadata":{"labels":{"a":"b"}},"ports":null}`, true},
		{"merge patch with parameters", "Application/Merge-Patch+JSON ;a=b", `{"ports":null}`, true},
		{"merge patch with an escaped name", mergePatchType, `{"endp\u006fints":[]}`, true},
		{"merge patch with a name in another case", mergePatchType, `{"Endpoints":[]}`, true},
		{"merge patch with a name of another script", mergePatchType, `{"endpoint\u017f":[]}`, true},
		{"merge patch that is no object", mergePatchType, `null`, true},
		{"strategic patch of endpoints", strategicPatchType, `{"endpoints":[]}`, true},
		{"strategic patch with an order", strategicPatchType, `{"$setElementOrder/endpoints":[]}`, true},
		{"strategic patch that replaces", strategicPatchType, `{"\u0024patch":"replace","metadata":{}}`, true},
		{"strategic patch that retains", strategicPatchType, `{"metadata":{},"$retainKeys":["metadata"]}`, true},
		{"JSON patch of endpoints", jsonPatchType, `[{"op":"replace","path":"/endpoints","value":[]}]`, true},
		{"JSON patch below endpoints", jsonPatchType, `[{"op":"remove","path":"/endpoints/0"}]`, true},
		{"JSON patch with an escape in its path", jsonPatchType, `[{"op":"remove","path":"\u002fendpoint\u0073/0"}]`, true},
		{"JSON patch without the first slash", jsonPatchType, `[{"op":"remove","path":"x/endpoints/0"}]`, true},
		{"JSON patch that moves endpoints", jsonPatchType, `[{"op":"move","from":"/endpoints","path":"/metadata/annotations/x"}]`, true},
		{"JSON patch of a port", jsonPatchType, `[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"replace","path":"/ports/0/port","value":1}]`, true},
		{"JSON patch of the whole", jsonPatchType, `[{"op":"replace","path":"","value":{}}]`, true},
		{"JSON patch with two paths", jsonPatchType, `[{"op":"remove","path":"/a","path":"/subsets"}]`, true},

		{"merge patch of a label", mergePatchType, `{"metadata":{"labels":{"endpoints":"ports"}}}`, false},
		{"strategic patch of an annotation", strategicPatchType, `{"metadata":{"annotations":{"a":null},"$retainKeys":["x"]}}`, false},
		{"empty patch", mergePatchType, ` { } `, false},
		{"JSON patch of a label", jsonPatchType, `[{"op":"add","path":"/metadata/labels/endpoints","value":{"endpoints":[]}}]`, false},
		{"JSON patch of a field with a longer name", jsonPatchType, `[{"op":"remove","path":"/endpointsx"}]`, false},
		{"JSON patch that is none", jsonPatchType, `{"path":"/endpoints"}`, false},
		{"JSON patch of a path that is none", jsonPatchType, `[{"path":["/endpoints"],"from":null}, 5]`, false},
		{"malformed patch", mergePatchType, `{"metadata":`, false},
		{"malformed behind a field", mergePatchType, `{"endpoints":[],`, false},
		{"nothing", mergePatchType, "", false},
		{"apply", "application/apply-patch+yaml", `{"endpoints":[]}`, false},
		{"an object", "application/json", `{"endpoints":[]}`, false},
	}
	for _, tt := range tests {
		if got := PatchTouches(tt.contentType, []byte(tt.body), filteredFields); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
	if !PatchTouches(jsonPatchType, []byte(`[{"path":"/a~1b~0c/d"}]`), [][]string{{"a/b~c"}}) {
		t.Error("a name with escapes of JSON pointers was not seen")
	}
}

func TestPatchTouchesFieldsOfFields(t *testing.T) {
	fields := [][]string{{"metadata", "managedFields"}, {"metadata", "annotations", "time"}}
	for _, tt := range []struct {
		contentType, body string
		want              bool
	}{
		{mergePatchType, `{"metadata":{"managedFields":[]}}`, true},
		{mergePatchType, `{"spec":{},"metadata":{"labels":{},"ManagedFields":null}}`, true},
		{mergePatchType, `{"metadata":null}`, true},
		{mergePatchType, `{"metadata":{"annotations":null}}`, true},
		{mergePatchType, `{"metadata":{"annotations":{"time":null}}}`, true},
		{mergePatchType, `{"metadata":{"annotations":{"other":"time"},"labels":{"time":""}}}`, false},
		{mergePatchType, `{"managedFields":[],"annotations":null,"spec":{"metadata":null}}`, false},
		{mergePatchType, `{"metadata":{}}`, false},
		{mergePatchType, `{"metadata":{}, "metadata":{"managedFields":[{}]}}`, true},
		{strategicPatchType, `{"metadata":{"$patch":"replace"}}`, true},
		{strategicPatchType, `{"metadata":{"annotations":{"$retainKeys":["other"]}}}`, true},
		{strategicPatchType, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`, true}, // by caution
		{strategicPatchType, `{"metadata":{"labels":{"$patch":"delete"}}}`, false},
		{jsonPatchType, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`, true},
		{jsonPatchType, `[{"op":"remove","path":"/metadata/managedFields/0/manager"}]`, true},
		{jsonPatchType, `[{"op":"add","path":"/metadata/annotations","value":{}}]`, true},
		{jsonPatchType, `[{"op":"add","path":"/metadata/annotations/time","value":""}]`, true},
		{jsonPatchType, `[{"op":"add","path":"/metadata","value":{}}]`, true},
		{jsonPatchType, `[{"op":"add","path":"","value":{}}]`, true},
		{jsonPatchType, `[{"op":"copy","from":"/metadata/managedFields","path":"/x"}]`, true},
		{jsonPatchType, `[{"op":"add","path":"/metadata/annotations/other","value":"time"}]`, false},
		{jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"add","path":"/spec/managedFields","value":1}]`, false},
	} {
		if got := PatchTouches(tt.contentType, []byte(tt.body), fields); got != tt.want {
			t.Errorf("%s: got %t", tt.body, got)
		}
	}
}

// The patches are made as kubectl edit makes them, from what it read and what the user left.
func TestPatchOfAnEdit(t *testing.T) {
	read := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", ResourceVersion: viewRevision},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	edits := map[string]struct {
		edit func(*discoveryv1.EndpointSlice)
		want bool
	}{
		"an endpoint": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.2" }, true},
		"all of them": {func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil }, true},
		"a port":      {func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{{}} }, true},
		"a label":     {func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} }, false},
	}
	for name, tt := range edits {
		edited := read.DeepCopy()
		tt.edit(edited)
		before, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		after, err := json.Marshal(edited)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, discoveryv1.EndpointSlice{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := edit(t, strategicPatchType, string(patch), toUpstream); err != nil || got != string(patch) {
			t.Errorf("%s: edited to %s, %v", name, got, err)
		}
		if got := PatchTouches(strategicPatchType, patch, filteredFields); got != tt.want {
			t.Errorf("%s: got %t, want %t: %s", name, got, tt.want, patch)
		}
	}
}

func TestIsDryRun(t *testing.T) {
	options := &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	tests := []struct {
		name, contentType, body string
		want                    bool
	}{
		{"JSON", "application/json", `{"kind":"DeleteOptions","dryRun":["All"]}`, true},
		{"JSON, another value", "application/json", `{"dryRun": [ "x" ] }`, true},
		{"JSON, escaped name", "application/json", `{"dry\u0052un":["All"]}`, true},
		{"JSON, last duplicate", "application/json", `{"dryRun":[],"dryRun":["All"]}`, true},
		{"JSON, first duplicate", "application/json", `{"dryRun":["All"],"dryRun":[]}`, false},
		{"JSON, empty", "application/json", `{"dryRun":[ ]}`, false},
		{"JSON, no list", "application/json", `{"dryRun":"All"}`, false},
		{"JSON, elsewhere", "application/json", `{"a":{"dryRun":["All"]},"b":"dryRun"}`, false},
		{"JSON, malformed", "application/json", `{"dryRun":["All"]`, false},
		{"no body", "", "", false},
		{"YAML", yamlType, "dryRun: [All]\n", true},
		{"YAML, block", yamlType, "kind: DeleteOptions\ndryRun:\n- All\n", true},
		{"YAML, empty", yamlType, "dryRun: []\n", false},
		{"YAML, none", yamlType, "preconditions: {dryRun: [All]}\n", false},
		{"YAML, large", yamlType, "dryRun: [All]\n" + strings.Repeat("#", maxOptions), false},
		{"CBOR", "application/cbor", cborBody(t, map[string]any{"dryRun": []any{"All"}}), true},
		{"CBOR, none", "application/cbor", cborBody(t, map[string]any{}), false},
		{"protobuf", protobufType, protobufBody(t, "DeleteOptions", options), true},
		{"protobuf without a kind", protobufType, protobufBody(t, "", options), true},
		{"protobuf, empty string", protobufType, protobufBody(t, "DeleteOptions", rawMessage("\x2a\x00")), true},
		{"protobuf, none", protobufType, protobufBody(t, "DeleteOptions", &metav1.DeleteOptions{}), false},
		{"protobuf, another kind", protobufType, protobufBody(t, "Service", options), false},
		{"protobuf, malformed", protobufType, protobufBody(t, "DeleteOptions", rawMessage("\x2a\x00\x0f")), false},
		{"text", "text/plain", `{"dryRun":["All"]}`, false},
	}
	for _, tt := range tests {
		if got := IsDryRun(tt.contentType, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}
