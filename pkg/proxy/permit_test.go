// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net/http"
	"testing"
)

// TestRefusalsAreForThoseWhoMayWrite asks who the client is before it says what the view has, and only then.
func TestRefusalsAreForThoseWhoMayWrite(t *testing.T) {
	const filtered = "/api/v1/namespaces/shop/endpoints/filtered"
	upstream := newUpstream(t, nil)
	asked := 0
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}, Permit: func(w http.ResponseWriter, r *http.Request) bool {
		asked++
		return mayForTest(w, r)
	}})
	for _, tt := range []struct {
		method, target, contentType, body, may string
		want, asked                            int
	}{
		{"PUT", serviceTarget, "application/cbor", "\xff" + viewRevision, "", http.StatusForbidden, 1},
		{"PUT", serviceTarget, "application/cbor", "\xff" + viewRevision, "yes", http.StatusUnsupportedMediaType, 1},
		{"PUT", filtered, "application/json", "{}", "", http.StatusForbidden, 1},
		{"PUT", filtered, "application/json", "{}", "yes", http.StatusUnprocessableEntity, 1},
		{"PUT", "/api/v1/namespaces/shop/endpoints/same", "application/json", "{}", "yes", http.StatusOK, 1},
		{"PUT", "/api/v1/namespaces/shop/endpoints/same", "application/json", `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`, "yes", http.StatusOK, 1},
		{"PUT", "/api/v1/namespaces/shop/endpoints/same", "application/json", `{"metadata":{"resourceVersion":"` + newViewRevision + `"}}`, "yes", http.StatusConflict, 1},
		{"PATCH", "/api/v1/namespaces/shop/endpoints/same", "application/apply-patch+yaml", `{"metadata":{"resourceVersion":"` + newViewRevision + `"}}`, "yes", http.StatusConflict, 1},
		{"PATCH", "/api/v1/namespaces/shop/endpoints/same", mergePatchType, `{"subsets":[],"metadata":{"resourceVersion":"` + newViewRevision + `"}}`, "yes", http.StatusOK, 1},
		{"PATCH", "/api/v1/namespaces/shop/endpoints/same", jsonPatchType, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + newViewRevision + `"},{"op":"remove","path":"/subsets"}]`, "yes", http.StatusOK, 1},
		{"PATCH", filtered, mergePatchType, `{"subsets":[]}`, "", http.StatusForbidden, 1},
		{"PATCH", filtered, mergePatchType, `{"metadata":{}}`, "", http.StatusOK, 0},
		{"PUT", serviceTarget, "application/json", "{}", "", http.StatusOK, 0},
		{"DELETE", filtered, "", "", "", http.StatusOK, 0},
	} {
		asked = 0
		response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType, "Test-May", tt.may)
		if response.StatusCode != tt.want || asked != tt.asked {
			t.Errorf("%s %s %s may %q: answer %d after %d reviews, want %d after %d: %s", tt.method, tt.target, tt.body, tt.may, response.StatusCode, asked, tt.want, tt.asked, body)
		}
	}
}

func mayForTest(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Test-May") == "" {
		w.WriteHeader(http.StatusForbidden)
	}
	return r.Header.Get("Test-May") != ""
}

// Whoever may not write hears so at once, also if the body never comes.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}, Permit: mayForTest})
	connection := front.dial(t)
	connection.send(t, "PUT /api/v1/namespaces/shop/endpoints/filtered HTTP/1.1", "Host: a", "Authorization: "+clientAuthorization,
		"Content-Type: application/json", "Content-Length: 100000")
	response := connection.response(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden || !response.Close {
		t.Errorf("answer %d, the connection closes: %t", response.StatusCode, response.Close)
	}
}

// An object may come to differ while the body of a write arrives.
func TestObjectsThatComeToDifferWhileTheBodyArrives(t *testing.T) {
	upstream := newUpstream(t, nil)
	view := &fakeView{}
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: view})
	reader, writer := io.Pipe()
	r := front.request(t, http.MethodPut, "/api/v1/namespaces/shop/endpoints/filtered", "", "Authorization", clientAuthorization)
	r.Body, r.ContentLength = reader, -1
	view.sameUntil(t, 1)
	go func() {
		_, _ = io.WriteString(writer, "{}")
		_ = writer.Close()
	}()
	response, err := front.client(t, true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnprocessableEntity || len(upstream.seen()) != 0 {
		t.Errorf("answer %d, upstream saw %+v", response.StatusCode, upstream.seen())
	}
}
