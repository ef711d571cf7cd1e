// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const ownNode = "node1"

var requestInfos = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

type servedFunc func(schema.GroupResource) bool

func (f servedFunc) Serves(gr schema.GroupResource) bool { return f(gr) }

func servesAll(schema.GroupResource) bool { return true }

func TestIsLocal(t *testing.T) {
	const (
		local    = true
		upstream = false
	)
	tests := []struct {
		method, target string
		want           bool
	}{
		// The resources of the view, and what kube-proxy and CoreDNS need besides.
		{"GET", "/api/v1/services", local},
		{"GET", "/api/v1/services/", local},
		{"GET", "/api/v1/services?watch=true", local},
		{"GET", "/api/v1/services?watch=1&resourceVersion=5", local},
		{"GET", "/api/v1/services?watch=false", local},
		{"GET", "/api/v1/services?limit=500&continue=abc", local},
		{"GET", "/api/v1/services?labelSelector=%21service.kubernetes.io%2Fheadless", local},
		{"GET", "/api/v1/services?watch=bogus", local},
		{"GET", "/api/v1/namespaces/default/services", local},
		{"GET", "/api/v1/namespaces/default/services/web", local},
		{"GET", "/api/v1/namespaces/default/services/web?watch=true", local},
		{"GET", "/api/v1/watch/services", local},
		{"GET", "/api/v1/watch/namespaces/default/services", local},
		{"GET", "/api/v1/watch/namespaces/default/services/web", local},
		{"GET", "/api/v1/endpoints", local},
		{"GET", "/api/v1/namespaces/default/endpoints/kubernetes", local},
		{"GET", "/apis/discovery.k8s.io/v1/endpointslices", local},
		{"GET", "/apis/discovery.k8s.io/v1/endpointslices?watch=true&sendInitialEvents=true&allowWatchBookmarks=true", local},
		{"GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1", local},
		{"GET", "/apis/discovery.k8s.io/v1/watch/endpointslices", local},
		{"GET", "/api/v1/namespaces", local},
		{"GET", "/api/v1/namespaces/default", local},
		{"GET", "/api/v1/namespaces?watch=true", local},
		{"GET", "/apis/networking.k8s.io/v1/servicecidrs", local},
		{"GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", local},

		// Nodes: the own one only.
		{"GET", "/api/v1/nodes/node1", local},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode1", local},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name==node1", local},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name=node1&watch=true", local},
		{"GET", "/api/v1/nodes", upstream},
		{"GET", "/api/v1/nodes?watch=true", upstream},
		{"GET", "/api/v1/nodes/node2", upstream},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode2", upstream},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name!%3Dnode1", upstream},
		{"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode1,spec.unschedulable%3Dfalse", upstream},
		{"GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse", upstream},
		{"GET", "/api/v1/nodes?fieldSelector=%3D%3D%3D", upstream},
		{"GET", "/api/v1/nodes/node1/status", upstream},
		{"GET", "/api/v1/nodes/node1/proxy/metrics", upstream},
		{"GET", "/api/v1/watch/nodes", upstream},
		{"GET", "/api/v1/watch/nodes/node1", upstream},

		// Health and metrics are about this server.
		{"GET", "/livez", local},
		{"GET", "/readyz", local},
		{"GET", "/readyz/ping", local},
		{"GET", "/readyz?verbose", local},
		{"GET", "/healthz", local},
		{"HEAD", "/healthz", local},
		{"GET", "/healthz/etcd", local},
		{"GET", "/metrics", local},
		{"GET", "/metrics/slis", upstream},
		{"GET", "/healthzz", upstream},
		{"POST", "/healthz", upstream},
		{"GET", "//healthz", upstream},

		// Everything else is upstream's.
		{"GET", "/", upstream},
		{"GET", "/api", upstream},
		{"GET", "/api/v1", upstream},
		{"GET", "/apis", upstream},
		{"GET", "/apis/discovery.k8s.io/v1", upstream},
		{"GET", "/openapi/v2", upstream},
		{"GET", "/openapi/v3/api/v1", upstream},
		{"GET", "/version", upstream},
		{"GET", "/api/v1/pods", upstream},
		{"GET", "/api/v1/namespaces/default/pods/web/log?follow=true", upstream},
		{"GET", "/apis/apps/v1/deployments", upstream},
		{"GET", "/apis/discovery.k8s.io/v1beta1/endpointslices", upstream},
		{"GET", "/apis/networking.k8s.io/v1beta1/servicecidrs", upstream},
		{"GET", "/apis/networking.k8s.io/v1/networkpolicies", upstream},
		{"GET", "/api/v2/services", upstream},
		{"GET", "/apis/example.com/v1/services", upstream},
		{"GET", "/apis/discovery.k8s.io/v1/services", upstream},
		{"GET", "/apis//v1/services", upstream},

		// Subresources, and the methods of writes.
		{"GET", "/api/v1/namespaces/default/services/web/status", upstream},
		{"GET", "/api/v1/namespaces/default/services/web/proxy/index.html", upstream},
		{"GET", "/api/v1/proxy/namespaces/default/services/web", upstream},
		{"GET", "/api/v1/namespaces/default/status", upstream},
		{"GET", "/api/v1/namespaces/default/finalize", upstream},
		{"POST", "/api/v1/namespaces/default/services", upstream},
		{"PUT", "/api/v1/namespaces/default/services/web", upstream},
		{"PATCH", "/api/v1/namespaces/default/endpoints/web", upstream},
		{"DELETE", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1", upstream},
		{"DELETE", "/api/v1/namespaces/default/services", upstream},
		{"POST", "/api/v1/watch/services", upstream},
		{"HEAD", "/api/v1/services", upstream},
		{"OPTIONS", "/api/v1/services", upstream},

		// Paths that servers may read differently.
		{"GET", "/api/v1//services", upstream},
		{"GET", "//api/v1/services", upstream},
		{"GET", "/api/v1/services//", upstream},
		{"GET", "/api/v1/namespaces//services", upstream},
		{"GET", "/api/v1/services/..", upstream},
		{"GET", "/api/v1/services/%2e%2e/pods", upstream},
		{"GET", "/api/v1/services/..%2f..%2fpods", upstream},
		{"GET", "/api/v1/./services", upstream},
		{"GET", "/api/v1/namespaces/default/services/a%2Fb", upstream},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, nil)
			info, err := requestInfos.NewRequestInfo(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := IsLocal(info, r, ownNode, servedFunc(servesAll)); got != tt.want {
				t.Errorf("IsLocal = %t, want %t (%+v)", got, tt.want, info)
			}
		})
	}
}

func TestIsLocalFollowsWhatIsServed(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/apis/networking.k8s.io/v1/servicecidrs", nil)
	info, err := requestInfos.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	var asked []schema.GroupResource
	served := servedFunc(func(gr schema.GroupResource) bool {
		asked = append(asked, gr)
		return false
	})
	if IsLocal(info, r, ownNode, served) {
		t.Error("a resource that is not served counts as local")
	}
	if len(asked) != 1 || asked[0] != serviceCIDRsResource.GroupResource() {
		t.Errorf("asked for %v", asked)
	}
	if IsLocal(info, r, ownNode, nil) {
		t.Error("local although nothing is known to be served")
	}
	if IsLocal(nil, r, ownNode, served) {
		t.Error("local without a RequestInfo")
	}
}

func TestNoNodeIsLocalWithoutNodeName(t *testing.T) {
	for _, target := range []string{"/api/v1/nodes?fieldSelector=metadata.name=", "/api/v1/nodes/", "/api/v1/nodes"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
		info, err := requestInfos.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if IsLocal(info, r, "", servedFunc(servesAll)) {
			t.Errorf("%s is local", target)
		}
	}
}

func TestRouter(t *testing.T) {
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	router := NewRouter(answer("local"), answer("upstream"), ownNode, servedFunc(servesAll))
	for target, want := range map[string]string{"/api/v1/services": "local", "/api/v1/pods": "upstream"} {
		w := httptest.NewRecorder()
		withRequestInfo(router).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
		if got := w.Body.String(); got != want {
			t.Errorf("%s went to %q, want %q", target, got, want)
		}
	}
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/services", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("without RequestInfo: code %d", w.Code)
	}
}

func withRequestInfo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := requestInfos.NewRequestInfo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	})
}

func FuzzIsLocal(f *testing.F) {
	for _, target := range []string{
		"/api/v1/services", "/api/v1/services/..%2f..", "/api/v1/watch/nodes/node1", "/apis//v1/services",
		"/api/v1/namespaces/a/services/b/proxy/c", "/healthz/../api", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode1",
		"/api/v1/nodes?fieldSelector=metadata.name%3Dnode1&watch=%zz", "//", "/api/v1/namespaces//services/%00",
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "HEAD", ""} {
			f.Add(method, target)
		}
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip()
		}
		r := &http.Request{Method: method, URL: u, RequestURI: target, Header: http.Header{}}
		info, err := requestInfos.NewRequestInfo(r)
		if err != nil {
			t.Skip()
		}
		if !IsLocal(info, r, ownNode, servedFunc(servesAll)) {
			return
		}
		if method != http.MethodGet && method != http.MethodHead {
			t.Errorf("%s %s is local", method, target)
		}
		if info.Subresource != "" {
			t.Errorf("subresource %q of %s is local", info.Subresource, target)
		}
		switch info.Verb {
		case "get", "list", "watch", "head":
		default:
			t.Errorf("verb %q of %s is local", info.Verb, target)
		}
		if info.IsResourceRequest && (strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/../")) {
			t.Errorf("ambiguous path %s is local", target)
		}
		if info.Resource == "nodes" && info.Name != ownNode {
			t.Errorf("node %q of %s is local", info.Name, target)
		}
	})
}
