// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"
	podsPath   = "/api/v1/namespaces/default/pods"
)

// withToken is the local identity that also sends a token.
func withToken(g *grid, token string) *rest.Config {
	config := rest.CopyConfig(g.local)
	config.BearerToken = token
	return config
}

func TestWhoMayReadTheView(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"))...)
	g := readyGrid(t, u)
	nobody := rest.AnonymousClientConfig(g.local)
	for _, c := range []struct {
		name   string
		config *rest.Config
		path   string
		code   int
	}{
		{"nobody reads the view", nobody, slicesPath, http.StatusUnauthorized},
		{"nobody reads metrics", nobody, "/metrics", http.StatusUnauthorized},
		{"nobody asks whether it lives", nobody, "/livez", http.StatusOK},
		{"nobody asks whether it is ready", nobody, "/readyz", http.StatusOK},
		{"unknown token", g.bearer("guess"), slicesPath, http.StatusUnauthorized},
		{"weak token", g.bearer(weakToken), slicesPath, http.StatusForbidden},
		{"weak token reads metrics", g.bearer(weakToken), "/metrics", http.StatusForbidden},
		{"admin token", g.bearer(adminToken), slicesPath, http.StatusOK},
		{"admin token reads metrics", g.bearer(adminToken), "/metrics", http.StatusOK},
		{"local identity", g.local, slicesPath, http.StatusOK},
		{"local identity with an unknown token", withToken(g, "guess"), slicesPath, http.StatusUnauthorized},
		{"local identity with a weak token", withToken(g, weakToken), slicesPath, http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := g.get(t, c.config, c.path, asJSON)
			if a.code != c.code {
				t.Fatalf("%d %s, want %d", a.code, a.body, c.code)
			}
			if c.code >= 400 {
				if status := decode[metav1.Status](t, a); status.Kind != "Status" || int(status.Code) != c.code {
					t.Errorf("not a Status: %s", a.body)
				}
				return
			}
			if c.path == slicesPath {
				if list := decode[discoveryv1.EndpointSliceList](t, a); summary(&list.Items[0]) != "s-1[n1 n2]" {
					t.Errorf("not the view: %s", a.body)
				}
			}
		})
	}
}

func TestForeignCertificateIsUnauthorized(t *testing.T) {
	g := readyGrid(t, startUpstream(t, fixture()...))
	certificate, _ := selfSigned(t)
	tlsConfig, err := rest.TLSConfigFor(rest.AnonymousClientConfig(g.local))
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if a := fetch(t, client, "https://"+g.address+slicesPath, asJSON); a.code != http.StatusUnauthorized {
		t.Errorf("%d %s, want 401", a.code, a.body)
	}
	// The health endpoints look at no credential.
	if a := fetch(t, client, "https://"+g.address+"/readyz", asJSON); a.code != http.StatusOK {
		t.Errorf("/readyz: %d %s", a.code, a.body)
	}
}

func TestProxiedTokenIsReviewedUpstreamOnly(t *testing.T) {
	u := startUpstream(t, fixture()...)
	g := readyGrid(t, u)
	for _, c := range []struct {
		name   string
		config *rest.Config
		token  string
		code   int
	}{
		{"admin", g.bearer(adminToken), adminToken, http.StatusOK},
		{"admin with a certificate", withToken(g, adminToken), adminToken, http.StatusOK},
		{"weak", g.bearer(weakToken), weakToken, http.StatusForbidden},
		{"unknown", g.bearer("guess"), "guess", http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := u.count(func(s seen) bool { return s.path == podsPath && s.token == c.token })
			a := g.get(t, c.config, podsPath, asJSON)
			if a.code != c.code {
				t.Errorf("%d %s, want upstream's %d", a.code, a.body, c.code)
			}
			if n := u.count(func(s seen) bool { return s.path == podsPath && s.token == c.token }) - before; n != 1 {
				t.Errorf("%d requests upstream with the token, want one", n)
			}
			if c.code == http.StatusOK {
				if list := decode[corev1.PodList](t, a); len(list.Items) != 1 || list.Items[0].Name != "upstream" {
					t.Errorf("not upstream's answer: %s", a.body)
				}
			}
		})
	}
	if n := u.count(func(s seen) bool { return strings.HasSuffix(s.resource, "reviews") }); n != 0 {
		t.Errorf("%d reviews, want none", n)
	}
	if n := u.count(func(s seen) bool { return s.resource == "pods" && s.token == serverToken }); n != 0 {
		t.Errorf("%d requests for pods with the server's own credential", n)
	}
}

func TestLocalIdentityCannotReachPods(t *testing.T) {
	u := startUpstream(t, fixture()...)
	g := readyGrid(t, u)
	a := g.get(t, g.local, podsPath, asJSON)
	status := decode[metav1.Status](t, a)
	if a.code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden || status.Details == nil || status.Details.Kind != "pods" {
		t.Errorf("%d %s, want a Status 403", a.code, a.body)
	}
	if n := u.count(func(s seen) bool { return s.resource == "pods" }); n != 0 {
		t.Errorf("%d requests have reached upstream", n)
	}
}

func TestWritesGoUpstream(t *testing.T) {
	u := startUpstream(t, fixture()...)
	g := readyGrid(t, u)
	client := newClient(t, g.bearer(adminToken))
	pods, services := client.CoreV1().Pods("default"), client.CoreV1().Services("default")
	if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := services.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for path, method := range map[string]string{podsPath: http.MethodPost, "/api/v1/namespaces/default/services/s": http.MethodDelete} {
		if n := u.count(func(s seen) bool { return s.path == path && s.method == method && s.token == adminToken }); n != 1 {
			t.Errorf("%d %s of %s upstream, want one", n, method, path)
		}
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil || version.GitVersion != "v1.37.2" {
		t.Errorf("/version is %v, %v, want upstream's", version, err)
	}
}

// TestAnswersMadeHereHaveAnAuditID, as all of kube-apiserver have. What comes from upstream has upstream's.
func TestAnswersMadeHereHaveAnAuditID(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", "n1"))...)
	g := readyGrid(t, u)
	ids := map[string]bool{}
	check := func(config *rest.Config, path string, code int) {
		t.Helper()
		a := g.get(t, config, path, asJSON)
		id := a.header["Audit-Id"]
		if a.code != code || len(id) != 1 || ids[id[0]] {
			t.Errorf("%s: %d, Audit-Id %q, want %d and one that is new", path, a.code, id, code)
		}
		ids[strings.Join(id, "")] = true
	}
	check(g.local, slicesPath, http.StatusOK)
	check(g.bearer(weakToken), slicesPath, http.StatusForbidden)
	check(g.local, podsPath, http.StatusForbidden)                                // refused by the proxy
	check(rest.AnonymousClientConfig(g.local), podsPath, http.StatusUnauthorized) // the same
	check(g.bearer(adminToken), "/api/v1/watch", http.StatusInternalServerError)  // nobody knows what it asks for
	check(g.local, slicesPath+"?fieldSelector=bad", http.StatusBadRequest)        // by the storage
	check(g.bearer(adminToken), "/healthz/nothing", http.StatusNotFound)          // by no handler at all
	u.stop()
	check(g.bearer(adminToken), podsPath, http.StatusServiceUnavailable) // because upstream is away
}
