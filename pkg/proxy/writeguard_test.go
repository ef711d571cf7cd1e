// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	serviceTarget = "/api/v1/namespaces/default/services/web"
	sliceTarget   = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1"
)

// protobufService is a Service with a revision, as clients send it.
func protobufService(t testing.TB, revision string) string {
	t.Helper()
	raw, err := (&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: revision}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := k8sruntime.Unknown{TypeMeta: k8sruntime.TypeMeta{APIVersion: "v1", Kind: "Service"}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(data)
}

func TestRevisionsOfTheViewBecomeThoseOfUpstream(t *testing.T) {
	object := func(revision string) string {
		return `{"unknown": [1.0, 1e3], "metadata":{"resourceVersion":"` + revision + `"},"metadata" : {"resourceVersion":"` + revision + `"} }`
	}
	tests := []struct{ name, method, target, contentType, body, want string }{
		{"replace", "PUT", serviceTarget, "application/json", object(viewRevision), object(upstreamRevision)},
		{"replace status", "PUT", serviceTarget + "/status", "application/json", object(viewRevision), object(upstreamRevision)},
		{"replace endpoints", "PUT", "/api/v1/namespaces/default/endpoints/web", "application/json", object(viewRevision), object(upstreamRevision)},
		{"replace slice in YAML", "PUT", sliceTarget, "application/yaml", "metadata: {resourceVersion: '" + viewRevision + "'} # why", "metadata: {resourceVersion: '" + upstreamRevision + "'} # why"},
		{"replace slice in protobuf", "PUT", sliceTarget, protobufType, protobufService(t, viewRevision), protobufService(t, upstreamRevision)},
		{"merge patch", "PATCH", serviceTarget, mergePatchType, object(viewRevision), object(upstreamRevision)},
		{"strategic patch", "PATCH", serviceTarget, strategicPatchType, object(viewRevision), object(upstreamRevision)},
		{"JSON patch", "PATCH", serviceTarget, jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + viewRevision + `"}]`, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + upstreamRevision + `"}]`},
		{"apply", "PATCH", serviceTarget + "?fieldManager=x", "application/apply-patch+yaml", object(viewRevision), object(upstreamRevision)},
		{"delete", "DELETE", serviceTarget, "application/json", `{"preconditions":{"resourceVersion":"` + viewRevision + `"}}`, `{"preconditions":{"resourceVersion":"` + upstreamRevision + `"}}`},
		{"another version of the group", "PUT", strings.Replace(sliceTarget, "v1/", "v1beta1/", 1), "application/json", object(viewRevision), object(upstreamRevision)},
	}
	unchanged := []struct{ name, method, target, contentType, body string }{
		{"a former revision", "PUT", serviceTarget, "application/json", object("1700000000000000")},
		{"a revision of upstream", "PUT", serviceTarget, "application/json", object("77")},
		{"create", "POST", "/api/v1/namespaces/default/services", "application/json", object(viewRevision)},
		{"patch of an annotation", "PATCH", serviceTarget, mergePatchType, `{"metadata":{"annotations":{"a":"` + viewRevision + `"}}}`},
		{"delete without options", "DELETE", serviceTarget, "", ""},
		{"delete collection", "DELETE", "/api/v1/namespaces/default/services", "application/json", `{"preconditions":{"resourceVersion":"` + viewRevision + `"}}`},
		{"other resource", "PUT", "/api/v1/namespaces/default/configmaps/web", "application/json", object(viewRevision)},
		{"resource with upstream's revisions", "PUT", "/api/v1/namespaces/web", "application/json", object(viewRevision)},
		{"service proxy", "POST", serviceTarget + "/proxy/x", "application/json", object(viewRevision)},
		{"a read with a body", "GET", serviceTarget + "/status", "application/json", object(viewRevision)},
		{"malformed", "PUT", serviceTarget, "application/json", object(viewRevision)[:60]},
		{"CBOR without a revision", "PUT", serviceTarget, "application/cbor", "\xff"},
		{"as large as may be", "PUT", serviceTarget, "application/json", "{}" + strings.Repeat(" ", maxGuardedBody-2)},
	}
	for _, tt := range unchanged {
		tests = append(tests, struct{ name, method, target, contentType, body, want string }{tt.name, tt.method, tt.target, tt.contentType, tt.body, tt.body})
	}
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ServedResources: servedFunc(servesAll), View: &fakeView{}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("answer %d: %s", response.StatusCode, body)
			}
			seen := upstream.last(t)
			if seen.Body != tt.want {
				t.Errorf("upstream saw %.300q, want %.300q", seen.Body, tt.want)
			}
			if length := seen.Header.Get("Content-Length"); tt.want != "" && length != strconv.Itoa(len(tt.want)) {
				t.Errorf("length %q, want %d", length, len(tt.want))
			}
		})
	}
}

func TestWritesThatCannotBeTranslatedAreRefused(t *testing.T) {
	tests := []struct {
		name, method, target, contentType, body string
		want                                    int
		header                                  []string
	}{
		{"CBOR", "PUT", serviceTarget, "application/cbor", "\xff" + viewRevision, http.StatusUnsupportedMediaType, nil},
		{"YAML alias", "PUT", serviceTarget, "application/yaml", "a: &a '" + viewRevision + "'\nmetadata: {resourceVersion: *a}", http.StatusUnsupportedMediaType, nil},
		{"too large", "PUT", serviceTarget, "application/json", strings.Repeat(" ", maxGuardedBody+1), http.StatusRequestEntityTooLarge, nil},
		{"compressed patch of what differs", "PATCH", "/api/v1/namespaces/shop/endpoints/filtered", mergePatchType, "\x1f\x8b", http.StatusUnprocessableEntity, []string{"Content-Encoding", "gzip"}},
		{"compressed", "PUT", serviceTarget, "application/json", "\x1f\x8b", http.StatusOK, []string{"Content-Encoding", "gzip"}},
	}
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ServedResources: servedFunc(servesAll), View: &fakeView{}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(upstream.seen())
			header := append([]string{"Authorization", clientAuthorization, "Content-Type", tt.contentType}, tt.header...)
			response, body := front.do(t, tt.method, tt.target, tt.body, header...)
			if response.StatusCode != tt.want {
				t.Fatalf("answer %d, want %d: %s", response.StatusCode, tt.want, body)
			}
			if sent := len(upstream.seen()) - before; (sent == 1) != (tt.want == http.StatusOK) {
				t.Errorf("upstream saw %d requests", sent)
			}
			if tt.want == http.StatusUnsupportedMediaType {
				if status := decodeStatus(t, body); !strings.Contains(status.Message, ownNode) || !strings.Contains(status.Message, "use JSON") {
					t.Errorf("message %q", status.Message)
				}
			}
		})
	}
}

// As long as nobody knows what the view lacks, nothing may be written that it may have been made of.
func TestWritesOfWhatMayDifferWaitForTheView(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{err: newUnavailable("not yet", 1)}})
	for _, tt := range []struct {
		method, target, contentType, body string
		want                              int
	}{
		{"PUT", sliceTarget, "application/json", "{}", http.StatusServiceUnavailable},
		{"PATCH", sliceTarget, mergePatchType, `{"endpoints":[]}`, http.StatusServiceUnavailable},
		{"PATCH", sliceTarget, mergePatchType, `{"metadata":{}}`, http.StatusOK},
		{"PUT", serviceTarget, "application/json", "{}", http.StatusOK},
		{"DELETE", sliceTarget, "", "", http.StatusOK},
	} {
		response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType)
		if response.StatusCode != tt.want || (tt.want == http.StatusOK) == (response.Header.Get("Retry-After") != "") {
			t.Errorf("%s %s %s: answer %d, want %d: %s", tt.method, tt.target, tt.body, response.StatusCode, tt.want, body)
		}
	}
}

// What a revision stands for depends on what the write carries of what was read at it.
func TestWhatWritesCarry(t *testing.T) {
	upstream := newUpstream(t, nil)
	view := &fakeView{}
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: view})
	const revision = `"resourceVersion":"` + viewRevision + `"`
	for _, tt := range []struct {
		method, target, contentType, body string
		want                              Carries
	}{
		{"PUT", serviceTarget, "application/json", `{"metadata":{` + revision + `}}`, Carries{Endpoints: true, Metadata: true}},
		{"PATCH", serviceTarget, "application/apply-patch+yaml", `{"metadata":{` + revision + `}}`, Carries{Endpoints: true, Metadata: true}},
		{"PATCH", serviceTarget, mergePatchType, `{"metadata":{` + revision + `},"spec":{"ports":[]}}`, Carries{}},
		{"PATCH", serviceTarget, mergePatchType, `{"metadata":{` + revision + `,"managedFields":[]}}`, Carries{Metadata: true}},
		{"PATCH", serviceTarget, jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + viewRevision + `"},{"op":"replace","path":"/metadata/managedFields","value":[]}]`, Carries{Metadata: true}},
		{"PATCH", sliceTarget, mergePatchType, `{"metadata":{` + revision + `,"annotations":{"a":"b"}}}`, Carries{}},
		{"PATCH", sliceTarget, mergePatchType, `{"metadata":{` + revision + `,"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":null}}}`, Carries{Metadata: true}},
		{"PATCH", sliceTarget, mergePatchType, `{"metadata":{` + revision + `},"endpoints":[]}`, Carries{Endpoints: true}},
		{"DELETE", sliceTarget, "application/json", `{"preconditions":{` + revision + `}}`, Carries{}},
	} {
		response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: answer %d: %s", tt.body, response.StatusCode, body)
		}
		if view.carried != tt.want {
			t.Errorf("%s %s: %+v, want %+v", tt.method, tt.body, view.carried, tt.want)
		}
	}
}

// Who has no token that upstream has accepted holds neither memory nor others up.
func TestCostlyBodiesOfStrangers(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}})
	bomb := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [*a" + strings.Repeat(",*a", 40_000) + "]\nmetadata: {resourceVersion: '7'}"
	items := `{"metadata":{"resourceVersion":"7"},"items":[0` + strings.Repeat(",0", 1_400_000) + "]}"
	for _, tt := range []struct{ target, contentType, body string }{
		{"/api/v1/namespaces/web", "application/yaml", bomb},
		{"/api/v1/nodes/" + ownNode, "application/yaml", bomb},
		{serviceTarget, "application/yaml", bomb},
		{"/api/v1/namespaces/web", "application/json", items},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		response, _ := front.do(t, "PUT", tt.target, tt.body, "Authorization", "Bearer stranger", "Content-Type", tt.contentType)
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; response.StatusCode != http.StatusOK || allocated > 100 {
			t.Errorf("PUT %s as %s: answer %d, %d MiB allocated", tt.target, tt.contentType, response.StatusCode, allocated)
		}
	}
	if front.proxy.guard.editors[0] == front.proxy.guard.editors[1] {
		t.Error("one parser for all")
	}
}

func TestTranslationFollowsWhatIsServed(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}, ServedResources: servedFunc(func(gr schema.GroupResource) bool {
		return gr.Resource != "endpoints"
	})})
	body := `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`
	for target, want := range map[string]string{
		"/api/v1/namespaces/default/endpoints/web": body,
		serviceTarget: `{"metadata":{"resourceVersion":"` + upstreamRevision + `"}}`,
	} {
		front.do(t, "PUT", target, body, "Authorization", clientAuthorization, "Content-Type", "application/json")
		if got := upstream.last(t).Body; got != want {
			t.Errorf("%s: upstream saw %s, want %s", target, got, want)
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
