// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWritesOfObjectsThatDiffer(t *testing.T) {
	const (
		slice     = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/filtered"
		endpoints = "/api/v1/namespaces/shop/endpoints/filtered"
	)
	refused, passes := http.StatusUnprocessableEntity, http.StatusOK
	tests := []struct {
		name, method, target, contentType, body string
		want                                    int
	}{
		{"replace slice", "PUT", slice, "application/json", `{"endpoints":[]}`, refused},
		{"replace slice as another version", "PUT", strings.Replace(slice, "/v1/", "/v1beta1/", 1), "application/json", `{}`, refused},
		{"replace slice with a view revision", "PUT", slice, "application/json", `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`, refused},
		{"replace slice in protobuf", "PUT", slice, protobufType, "k8s\x00", refused},
		{"replace slice without a body", "PUT", slice, "", "", refused},
		{"replace endpoints", "PUT", endpoints, "application/yaml", "subsets: []", refused},
		{"apply slice", "PATCH", slice + "?fieldManager=x", "application/apply-patch+yaml", `{"metadata":{"labels":{"a":"b"}}}`, refused},
		{"apply slice in CBOR", "PATCH", slice + "?fieldManager=x", "application/apply-patch+cbor", "\xa0", refused},
		{"apply endpoints with parameters", "PATCH", endpoints, "Application/Apply-Patch+YAML ;a=b", "{}", refused},

		{"merge patch of endpoints", "PATCH", slice, mergePatchType, `{"endpoints":[]}`, refused},
		{"merge patch of ports", "PATCH", slice, mergePatchType, `{"metadata":{"labels":{"a":"b"}},"ports":null}`, refused},
		{"merge patch of subsets", "PATCH", endpoints, mergePatchType, `{"subsets":[{}]}`, refused},
		{"merge patch that is no object", "PATCH", slice, mergePatchType, `null`, refused},
		{"strategic patch of endpoints", "PATCH", slice, strategicPatchType, `{"endpoints":[]}`, refused},
		{"strategic patch that replaces", "PATCH", slice, strategicPatchType, `{"$patch":"replace","metadata":{}}`, refused},
		{"strategic patch that retains", "PATCH", endpoints, strategicPatchType, `{"metadata":{},"$retainKeys":["metadata"]}`, refused},
		{"JSON patch of endpoints", "PATCH", slice, jsonPatchType, `[{"op":"replace","path":"/endpoints","value":[]}]`, refused},
		{"JSON patch below endpoints", "PATCH", slice, jsonPatchType, `[{"op":"remove","path":"/endpoints/0"}]`, refused},
		{"JSON patch that moves endpoints", "PATCH", slice, jsonPatchType, `[{"op":"move","from":"/endpoints","path":"/metadata/annotations/x"}]`, refused},
		{"JSON patch of a port", "PATCH", slice, jsonPatchType, `[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"replace","path":"/ports/0/port","value":1}]`, refused},
		{"JSON patch of subsets", "PATCH", endpoints, jsonPatchType, `[{"path":"/subsets/0/addresses/-","op":"add","value":{}}]`, refused},
		{"JSON patch of the whole", "PATCH", endpoints, jsonPatchType, `[{"op":"replace","path":"","value":{}}]`, refused},

		{"merge patch of a label", "PATCH", slice, mergePatchType, `{"metadata":{"labels":{"endpoints":"ports"}}}`, passes},
		{"strategic patch of an annotation", "PATCH", endpoints, strategicPatchType, `{"metadata":{"annotations":{"a":null},"$retainKeys":["x"]}}`, passes},
		{"JSON patch of a label", "PATCH", slice, jsonPatchType, `[{"op":"add","path":"/metadata/labels/endpoints","value":{"endpoints":[]}}]`, passes},
		{"malformed patch", "PATCH", slice, mergePatchType, `{"metadata":`, passes}, // upstream answers for it
		{"delete", "DELETE", slice, "application/json", `{}`, passes},
		{"delete collection", "DELETE", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", "", "", passes},
		{"create", "POST", "/api/v1/namespaces/shop/endpoints", "application/json", `{"metadata":{"name":"filtered"},"subsets":[]}`, passes},
		{"read", "GET", slice + "/status", "", "", passes},

		{"replace what does not differ", "PUT", strings.Replace(slice, "filtered", "same", 1), "application/json", `{"endpoints":[]}`, passes},
		{"replace in another namespace", "PUT", strings.Replace(endpoints, "shop", "other", 1), "application/json", `{"subsets":[]}`, passes},
		{"patch what does not differ", "PATCH", strings.Replace(endpoints, "filtered", "same", 1), mergePatchType, `{"subsets":[]}`, passes},
		{"apply what does not differ", "PATCH", strings.Replace(slice, "filtered", "same", 1), "application/apply-patch+yaml", `{"endpoints":[]}`, passes},
		{"replace a Service of that name", "PUT", "/api/v1/namespaces/shop/services/filtered", "application/json", `{"spec":{"ports":[]}}`, passes},
		{"patch a Service of that name", "PATCH", "/api/v1/namespaces/shop/services/filtered", mergePatchType, `{"ports":[]}`, passes},
	}
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(upstream.seen())
			response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType)
			if response.StatusCode != tt.want {
				t.Fatalf("answer %d, want %d: %s", response.StatusCode, tt.want, body)
			}
			seen := upstream.seen()[before:]
			if tt.want == passes {
				if len(seen) != 1 || seen[0].Body != tt.body {
					t.Errorf("upstream saw %+v", seen)
				}
				return
			}
			if len(seen) != 0 {
				t.Errorf("upstream saw %+v", seen)
			}
			if tt.want != refused {
				return
			}
			status := decodeStatus(t, body)
			if status.Reason != metav1.StatusReasonInvalid || status.Details == nil || status.Details.Name != "filtered" || len(status.Details.Causes) != 1 {
				t.Fatalf("not an Invalid error: %s", body)
			}
			// kubectl edit shows the causes alone.
			for _, text := range []string{status.Message, status.Details.Causes[0].Message} {
				for _, want := range []string{`"` + ownNode + `"`, "filtered view", upstream.URL, "labels and annotations"} {
					if !strings.Contains(text, want) {
						t.Errorf("%q does not mention %s", text, want)
					}
				}
			}
		})
	}
}
