// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestLocalIdentityMay(t *testing.T) {
	resource := func(verb, group, resource, subresource string) authorizer.Attributes {
		return authorizer.AttributesRecord{Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource, ResourceRequest: true}
	}
	path := func(verb, path string) authorizer.Attributes {
		return authorizer.AttributesRecord{Verb: verb, Path: path}
	}
	tests := []struct {
		attributes authorizer.Attributes
		want       bool
	}{
		{resource("get", "", "services", ""), true},
		{resource("list", "", "endpoints", ""), true},
		{resource("watch", "discovery.k8s.io", "endpointslices", ""), true},
		{resource("list", "", "nodes", ""), true},
		{resource("watch", "", "namespaces", ""), true},
		{resource("list", "networking.k8s.io", "servicecidrs", ""), true},
		{resource("create", "", "events", ""), true},
		{resource("patch", "events.k8s.io", "events", ""), true},
		{resource("update", "events.k8s.io", "events", ""), true},
		{resource("create", "authorization.k8s.io", "selfsubjectaccessreviews", ""), true},
		{resource("create", "authorization.k8s.io", "selfsubjectrulesreviews", ""), true},
		{resource("create", "authentication.k8s.io", "selfsubjectreviews", ""), true},

		{resource("create", "", "services", ""), false},
		{resource("delete", "", "services", ""), false},
		{resource("deletecollection", "", "services", ""), false},
		{resource("proxy", "", "services", ""), false},
		{resource("get", "", "services", "proxy"), false},
		{resource("get", "", "services", "status"), false},
		{resource("get", "", "nodes", "proxy"), false},
		{resource("patch", "", "nodes", ""), false},
		{resource("get", "example.com", "services", ""), false},
		{resource("get", "", "endpointslices", ""), false},
		{resource("list", "", "events", ""), false},
		{resource("delete", "", "events", ""), false},
		{resource("list", "", "pods", ""), false},
		{resource("list", "", "secrets", ""), false},
		{resource("create", "authorization.k8s.io", "subjectaccessreviews", ""), false},
		{resource("create", "authentication.k8s.io", "tokenreviews", ""), false},
		{resource("create", "", "serviceaccounts", "token"), false},
		{resource("*", "*", "*", ""), false},
		{resource("", "", "", ""), false},

		{path("get", "/api"), true},
		{path("get", "/api/v1"), true},
		{path("get", "/apis/apps/v1"), true},
		{path("get", "/openapi/v3"), true},
		{path("get", "/version"), true},
		{path("get", "/readyz"), true},
		{path("post", "/api"), false},
		{path("get", "/apix"), false},
		{path("get", "/metrics"), false},
		{path("get", "/logs/"), false},
		{path("get", "/readyz/etcd"), false},
		{path("get", "/debug/pprof/heap"), false},
		{path("get", "/"), false},
		{path("get", ""), false},
	}
	for _, tt := range tests {
		a := tt.attributes
		t.Run(fmt.Sprintf("%s %s%s.%s/%s", a.GetVerb(), a.GetPath(), a.GetResource(), a.GetAPIGroup(), a.GetSubresource()), func(t *testing.T) {
			if got := LocalIdentityMay(a); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTokensPassThroughWithoutTheServersCredential(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, authorization := range []string{clientAuthorization, "bearer  odd", "BEARER x y"} {
		// A token wins over the local identity, whose rights would not cover this.
		response, _ := front.do(t, "GET", "/api/v1/secrets", "", "Authorization", authorization, asLocalIdentity, "1")
		if authorization == "bearer  odd" { // no token by kube-apiserver's reading
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%q: answer %d", authorization, response.StatusCode)
			}
			continue
		}
		if got := upstream.last(t).Header["Authorization"]; !cmp.Equal(got, []string{authorization}) || response.StatusCode != http.StatusOK {
			t.Errorf("%q: answer %d, upstream saw %q", authorization, response.StatusCode, got)
		}
	}
}

func TestConnectionHeaderCannotTakeAnIdentityApart(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	connection := front.dial(t)
	connection.send(t, "GET /api/v1/secrets HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization,
		"Connection: Authorization, Impersonate-User, X-Remote-User", "Impersonate-User: jane", "X-Remote-User: admin")
	connection.response(t)
	want := http.Header{"Authorization": {clientAuthorization}, "Impersonate-User": {"jane"}, "X-Forwarded-For": {"127.0.0.1"}}
	if diff := cmp.Diff(want, upstream.last(t).Header); diff != "" {
		t.Errorf("headers at upstream (-want +got):\n%s", diff)
	}
}

func TestLocalIdentityUsesTheServersCredential(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, tt := range []struct{ method, target, body string }{
		{"GET", "/api/v1/nodes?limit=500", ""},
		{"GET", "/apis/discovery.k8s.io/v1beta1/endpointslices", ""},
		{"GET", "/apis/networking.k8s.io/v1/servicecidrs?watch=true", ""},
		{"POST", "/apis/events.k8s.io/v1/namespaces/default/events", `{"kind":"Event"}`},
		{"PATCH", "/api/v1/namespaces/default/events/node1.17a0", `{}`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{}`},
		{"GET", "/version/", ""},
		{"GET", "/openapi/v3/apis/discovery.k8s.io/v1?hash=A0", ""},
	} {
		response, body := front.do(t, tt.method, tt.target, tt.body, asLocalIdentity, "1", "Authorization", "Basic Zm9vOmJhcg==",
			"X-Remote-User", "admin", "X-Http-Method-Override", "DELETE", "Cookie", "a=b", "Accept", "application/json", "Content-Type", "application/json")
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s %s: answer %d %s", tt.method, tt.target, response.StatusCode, body)
			continue
		}
		got := upstream.last(t)
		want := recorded{Method: tt.method, RequestURI: tt.target, Proto: "HTTP/2.0", Body: tt.body, Header: http.Header{
			"Accept": {"application/json"}, "Authorization": {"Bearer " + serverToken},
			"Content-Type": {"application/json"}, "User-Agent": {"Go-http-client/1.1"},
		}}
		got.Header.Del("Content-Length")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s: upstream saw (-want +got):\n%s", tt.method, tt.target, diff)
		}
	}
}

func TestServersCredentialIsOutOfReach(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	tests := []struct {
		name  string
		lines []string
	}{
		{"another resource", []string{"GET /api/v1/pods HTTP/1.1"}},
		{"secrets", []string{"GET /api/v1/namespaces/kube-system/secrets/x HTTP/1.1"}},
		{"a write", []string{"POST /api/v1/namespaces/default/services HTTP/1.1"}},
		{"delete collection", []string{"DELETE /api/v1/namespaces/default/endpoints HTTP/1.1"}},
		{"token request", []string{"POST /api/v1/namespaces/default/serviceaccounts/x/token HTTP/1.1"}},
		{"service proxy", []string{"GET /api/v1/namespaces/default/services/web/proxy/ HTTP/1.1"}},
		{"node proxy", []string{"GET /api/v1/nodes/node1/proxy/pods HTTP/1.1"}},
		{"proxy prefix", []string{"GET /api/v1/proxy/nodes/node1 HTTP/1.1"}},
		{"write through the watch prefix", []string{"DELETE /api/v1/watch/services HTTP/1.1"}},
		{"encoded slashes", []string{"GET /api/v1/services/..%2f..%2fpods HTTP/1.1"}},
		{"encoded dots", []string{"GET /api/v1/services/%2e%2e HTTP/1.1"}},
		{"dots", []string{"GET /api/v1/services/.. HTTP/1.1"}},
		{"dots in discovery", []string{"GET /apis/../api/v1 HTTP/1.1"}},
		{"encoded name", []string{"GET /api/v1/services/%61 HTTP/1.1"}},
		{"double slash", []string{"GET /api/v1//services HTTP/1.1"}},
		{"leading double slash", []string{"GET //api/v1/services HTTP/1.1"}},
		{"empty namespace", []string{"GET /api/v1/namespaces//services HTTP/1.1"}},
		{"semicolon", []string{"GET /api/v1/services;a=b HTTP/1.1"}},
		{"backslash", []string{`GET /api/v1/services\..\pods HTTP/1.1`}},
		{"absolute form", []string{"GET https://upstream/api/v1/pods HTTP/1.1"}},
		{"HEAD", []string{"HEAD /api/v1/nodes HTTP/1.1"}},
		{"POST to discovery", []string{"POST /api HTTP/1.1"}},
		{"upgrade", []string{"GET /api/v1/nodes?watch=true HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"}},
		{"h2c", []string{"GET /api/v1/nodes HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"}},
		{"upgrade without connection", []string{"GET /api/v1/nodes HTTP/1.1", "Upgrade: websocket"}},
		{"impersonation", []string{"GET /api/v1/nodes HTTP/1.1", "Impersonate-User: admin"}},
		{"impersonation of a group", []string{"GET /api/v1/nodes HTTP/1.1", "impersonate-group: system:masters"}},
		{"impersonation hidden as a hop-by-hop header", []string{"GET /api/v1/nodes HTTP/1.1", "Connection: Impersonate-User", "Impersonate-User: admin"}},
		{"empty token", []string{"GET /api/v1/pods HTTP/1.1", "Authorization: Bearer "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(upstream.seen())
			connection := front.dial(t)
			connection.send(t, append(tt.lines, "Host: x", asLocalIdentity+": 1", "Content-Length: 0")...)
			if response := connection.response(t); response.StatusCode != http.StatusForbidden {
				t.Errorf("answer %d, want 403", response.StatusCode)
			}
			if seen := upstream.seen()[before:]; len(seen) != 0 {
				t.Errorf("upstream saw %+v", seen)
			}
		})
	}
}

func TestRefusalsAreWordedAsByKubeAPIServer(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	tests := []struct {
		target, want string
		reason       metav1.StatusReason
		header       []string
	}{
		{"/api/v1/pods", `pods is forbidden: User "system:kube-proxy" cannot list resource "pods" in API group "" at the cluster scope`, metav1.StatusReasonForbidden, []string{asLocalIdentity, "1"}},
		{"/apis/apps/v1/namespaces/default/deployments/web/scale", `deployments.apps "web" is forbidden: User "system:kube-proxy" cannot get resource "deployments/scale" in API group "apps" in the namespace "default"`, metav1.StatusReasonForbidden, []string{asLocalIdentity, "1"}},
		{"/logs", `forbidden: User "system:kube-proxy" cannot get path "/logs"`, metav1.StatusReasonForbidden, []string{asLocalIdentity, "1"}},
		{"/api/v1/pods", "Unauthorized", metav1.StatusReasonUnauthorized, nil},
		{"/api/v1/pods", "Unauthorized", metav1.StatusReasonUnauthorized, []string{"Impersonate-User", "admin", "X-Remote-User", "admin"}},
		{"/api/v1/pods", "Unauthorized", metav1.StatusReasonUnauthorized, []string{"Authorization", "Basic YWRtaW46YWRtaW4="}},
	}
	for _, tt := range tests {
		_, body := front.do(t, "GET", tt.target, "", tt.header...)
		status := decodeStatus(t, body)
		if !strings.HasPrefix(status.Message, tt.want) || status.Reason != tt.reason {
			t.Errorf("%s: %s %q, want %q", tt.target, status.Reason, status.Message, tt.want)
		}
	}
	if seen := upstream.seen(); len(seen) != 0 {
		t.Errorf("upstream saw %+v", seen)
	}
}

func TestWebSocketTokenCountsAsToken(t *testing.T) {
	encoded := base64.RawURLEncoding.EncodeToString([]byte("client-token"))
	for protocols, want := range map[string]bool{
		"base64url.bearer.authorization.k8s.io." + encoded + ", v4.channel.k8s.io": true,
		"v4.channel.k8s.io": false,
		"base64url.bearer.authorization.k8s.io.!, v4.channel.k8s.io":     false,
		"base64url.bearer.authorization.k8s.io., v4.channel.k8s.io":      false,
		"base64url.bearer.authorization.k8s.io." + encoded:               false, // nothing to answer with
		"x-base64url.bearer.authorization.k8s.io." + encoded + ", other": false,
	} {
		r := &http.Request{Header: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {protocols},
		}}
		if got := len(tokensOf(r)) > 0; got != want {
			t.Errorf("%q: %t, want %t", protocols, got, want)
		}
		if got := r.Header.Get("Sec-Websocket-Protocol"); got != protocols {
			t.Errorf("%q became %q", protocols, got)
		}
	}
}

func TestServersTokenFileMayRotate(t *testing.T) {
	upstream := newUpstream(t, nil)
	cfg := upstream.config()
	cfg.BearerToken, cfg.BearerTokenFile = "", filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.BearerTokenFile, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	front := newFront(t, HandlerConfig{Upstream: cfg})
	front.do(t, "GET", "/api/v1/nodes", "", asLocalIdentity, "1")
	if got := upstream.last(t).Header.Get("Authorization"); got != "Bearer from-file" {
		t.Errorf("upstream saw %q", got)
	}
	front.do(t, "GET", "/api/v1/nodes", "", "Authorization", clientAuthorization)
	if got := upstream.last(t).Header.Get("Authorization"); got != clientAuthorization {
		t.Errorf("upstream saw %q", got)
	}
}
