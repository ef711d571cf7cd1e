// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"
)

func TestWriteGuard(t *testing.T) {
	const (
		service = "/api/v1/namespaces/default/services/web"
		slice   = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1"
	)
	object := `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`
	plain := `{"metadata":{"resourceVersion":"77"},  "unknown": [1.0, 1e3] }`
	tests := []struct {
		name, method, target, contentType, body string
		want                                    int
		header                                  []string
	}{
		{"replace", "PUT", service, "application/json", object, http.StatusNotImplemented, nil},
		{"replace status", "PUT", service + "/status", "application/json", object, http.StatusNotImplemented, nil},
		{"replace endpoints", "PUT", "/api/v1/namespaces/default/endpoints/web", "application/json", object, http.StatusNotImplemented, nil},
		{"replace slice in YAML", "PUT", slice, "application/yaml", "metadata: {resourceVersion: '" + viewRevision + "'}", http.StatusNotImplemented, nil},
		{"replace slice in protobuf", "PUT", slice, protobufType, string(protobufBody(t, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: viewRevision}})), http.StatusNotImplemented, nil},
		{"patch", "PATCH", service, "application/merge-patch+json", object, http.StatusNotImplemented, nil},
		{"JSON patch", "PATCH", service, jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + viewRevision + `"}]`, http.StatusNotImplemented, nil},
		{"apply", "PATCH", service + "?fieldManager=x", "application/apply-patch+yaml", object, http.StatusNotImplemented, nil},
		{"delete", "DELETE", service, "application/json", `{"preconditions":{"resourceVersion":"` + viewRevision + `"}}`, http.StatusNotImplemented, nil},
		{"create", "POST", "/api/v1/namespaces/default/services", "application/json", object, http.StatusNotImplemented, nil},
		{"older version of the group", "PUT", strings.Replace(slice, "v1/", "v1beta1/", 1), "application/json", object, http.StatusNotImplemented, nil},

		{"replace without a view revision", "PUT", service, "application/json", plain, http.StatusOK, nil},
		{"patch of an annotation", "PATCH", service, "application/merge-patch+json", `{"metadata":{"annotations":{"a":"b"}}}`, http.StatusOK, nil},
		{"delete without options", "DELETE", service, "", "", http.StatusOK, nil},
		{"delete collection", "DELETE", "/api/v1/namespaces/default/services", "application/json", `{"preconditions":{"resourceVersion":"` + viewRevision + `"}}`, http.StatusOK, nil},
		{"other resource", "PUT", "/api/v1/namespaces/default/configmaps/web", "application/json", object, http.StatusOK, nil},
		{"service proxy", "POST", service + "/proxy/x", "application/json", object, http.StatusOK, nil},
		{"a read with a body", "GET", service + "/status", "application/json", object, http.StatusOK, nil},

		{"compressed", "PUT", service, "application/json", "\x1f\x8b", http.StatusUnsupportedMediaType, []string{"Content-Encoding", "gzip"}},
		{"compressed, other resource", "PUT", "/api/v1/namespaces/default/configmaps/web", "application/json", "\x1f\x8b", http.StatusOK, []string{"Content-Encoding", "gzip"}},
		{"unreadable CBOR", "PUT", service, "application/cbor", "\xff" + viewRevision, http.StatusUnsupportedMediaType, nil},
		{"unreadable CBOR without a view revision", "PUT", service, "application/cbor", "\xff", http.StatusOK, nil},
		{"as large as may be", "PUT", service, "application/json", plain + strings.Repeat(" ", maxGuardedBody-len(plain)), http.StatusOK, nil},
		{"too large", "PUT", service, "application/json", plain + strings.Repeat(" ", maxGuardedBody-len(plain)+1), http.StatusRequestEntityTooLarge, nil},
	}
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ServedResources: servedFunc(servesAll)})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(upstream.seen())
			header := append([]string{"Authorization", clientAuthorization, "Content-Type", tt.contentType}, tt.header...)
			response, body := front.do(t, tt.method, tt.target, tt.body, header...)
			if response.StatusCode != tt.want {
				t.Fatalf("answer %d, want %d: %s", response.StatusCode, tt.want, body)
			}
			seen := upstream.seen()[before:]
			if tt.want == http.StatusOK {
				if len(seen) != 1 || seen[0].Body != tt.body {
					t.Errorf("the body has changed on the way")
				}
				return
			}
			if len(seen) != 0 {
				t.Errorf("upstream saw %+v", seen)
			}
			status := decodeStatus(t, body)
			if tt.want == http.StatusNotImplemented && (!strings.Contains(status.Message, ownNode) || !strings.Contains(status.Message, "without a resourceVersion")) {
				t.Errorf("message %q", status.Message)
			}
		})
	}
}

func TestWriteGuardFollowsWhatIsServed(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ServedResources: servedFunc(func(gr schema.GroupResource) bool {
		return gr.Resource != "endpoints"
	})})
	body := `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`
	for target, want := range map[string]int{
		"/api/v1/namespaces/default/endpoints/web": http.StatusOK,
		"/api/v1/namespaces/default/services/web":  http.StatusNotImplemented,
	} {
		response, _ := front.do(t, "PUT", target, body, "Authorization", clientAuthorization, "Content-Type", "application/json")
		if response.StatusCode != want {
			t.Errorf("%s: answer %d, want %d", target, response.StatusCode, want)
		}
	}
}

func TestProxiedWatchFromViewRevisionIsExpired(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for target, want := range map[string]int{
		"/api/v1/pods?watch=true&resourceVersion=" + viewRevision:             http.StatusGone,
		"/api/v1/nodes?resourceVersion=" + viewRevision + "&watch=1":          http.StatusGone,
		"/api/v1/watch/pods?resourceVersion=" + viewRevision:                  http.StatusGone,
		"/api/v1/pods?watch=true&resourceVersion=" + upstreamRevision:         http.StatusOK,
		"/api/v1/pods?watch=true":                                             http.StatusOK,
		"/api/v1/pods?resourceVersion=" + viewRevision:                        http.StatusOK,
		"/api/v1/namespaces/default/pods/web?resourceVersion=" + viewRevision: http.StatusOK,
	} {
		response, body := front.do(t, "GET", target, "", "Authorization", clientAuthorization)
		if response.StatusCode != want {
			t.Errorf("%s: answer %d, want %d", target, response.StatusCode, want)
		}
		if want == http.StatusGone {
			if status := decodeStatus(t, body); status.Reason != metav1.StatusReasonExpired {
				t.Errorf("%s: reason %q", target, status.Reason)
			}
		}
	}
}
