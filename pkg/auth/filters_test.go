// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// cluster is an upstream with a few users and rights.
func cluster() *answers {
	return &answers{
		users: map[string]authenticationv1.UserInfo{
			"reader-token":       {Username: "reader", Groups: []string{"readers", "system:authenticated"}},
			"nobody-token":       {Username: "nobody", Groups: []string{"system:authenticated"}},
			"impersonator-token": {Username: "impersonator", Groups: []string{"system:authenticated"}},
			"proxy-token":        {Username: "system:kube-proxy", Groups: []string{"system:authenticated"}},
			"nameless-token":     {},
		},
		allowed: func(spec authorizationv1.SubjectAccessReviewSpec) bool {
			switch {
			case slices.Contains(spec.Groups, "system:masters"):
				return true
			case spec.NonResourceAttributes != nil:
				return spec.User == "reader" && spec.NonResourceAttributes.Path == "/metrics"
			case spec.User == "impersonator":
				return spec.ResourceAttributes.Verb == "impersonate" && spec.ResourceAttributes.Resource == "users" && spec.ResourceAttributes.Name == "reader"
			}
			return spec.User == "reader" && spec.ResourceAttributes.Verb != "create" && !strings.HasPrefix(spec.ResourceAttributes.Verb, "impersonate")
		},
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	upstream := cluster()
	tokens, access, err := NewReviewers(newUpstream(t, upstream))
	if err != nil {
		t.Fatal(err)
	}
	cas := newTestCAs(t)
	handler := newChain(t, tokens, access, cas)
	local := cas.local.client(t, "system:kube-proxy", "system:node-proxier")

	const unauthorized = "Unauthorized"
	for _, tc := range []struct {
		name    string
		method  string
		path    string
		token   string
		cert    *x509.Certificate
		headers http.Header
		code    int
		user    string
		message string
	}{
		{name: "token with the right", token: "reader-token", code: 200, user: "reader"},
		{name: "token with the right to a path", path: "/metrics", token: "reader-token", code: 200, user: "reader"},
		{name: "token without the right", token: "nobody-token", code: 403,
			message: `services is forbidden: User "nobody" cannot list resource "services" in API group "" at the cluster scope: no RBAC policy matched`},
		{name: "token without the right in a namespace", path: "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/a", token: "nobody-token", code: 403,
			message: `endpointslices.discovery.k8s.io "a" is forbidden: User "nobody" cannot get resource "endpointslices" in API group "discovery.k8s.io" in the namespace "ns": no RBAC policy matched`},
		{name: "token without the right to a path", path: "/metrics", token: "nobody-token", code: 403,
			message: `forbidden: User "nobody" cannot get path "/metrics": no RBAC policy matched`},
		{name: "rejected token", token: "wrong", code: 401, message: unauthorized},
		{name: "token of a user without a name", token: "nameless-token", code: 401, message: unauthorized},
		{name: "no credential", code: 401, message: unauthorized},
		{name: "no credential for metrics", path: "/metrics", code: 401, message: unauthorized},
		{name: "basic authentication", headers: http.Header{"Authorization": {"Basic cmVhZGVyOng="}}, code: 401, message: unauthorized},

		{name: "local identity", cert: local, code: 200, user: "system:kube-proxy"},
		{name: "local identity watches", path: "/apis/discovery.k8s.io/v1/endpointslices?watch=1", cert: local, code: 200, user: "system:kube-proxy"},
		{name: "local identity outside its rule", path: "/api/v1/secrets", cert: local, code: 403,
			message: `secrets is forbidden: User "system:kube-proxy" cannot list resource "secrets" in API group "" at the cluster scope: not a right of the local identity`},
		{name: "local identity writes", method: http.MethodPost, path: "/api/v1/namespaces/ns/services", cert: local, code: 403},
		{name: "local identity and metrics", path: "/metrics", cert: local, code: 403},
		{name: "token wins over the local identity", token: "nobody-token", cert: local, code: 403},
		{name: "rejected token is not made good by the local identity", token: "wrong", cert: local, code: 401, message: unauthorized},
		{name: "name of the local identity from upstream has no built-in right", token: "proxy-token", code: 403},
		{name: "certificate of another CA", cert: cas.foreign.client(t, "system:kube-proxy"), code: 401, message: unauthorized},
		{name: "expired certificate", cert: cas.local.expired(t, "system:kube-proxy"), code: 401, message: unauthorized},
		{name: "certificate for servers", cert: cas.local.serverOnly(t, "system:kube-proxy"), code: 401, message: unauthorized},
		{name: "other name from the local CA", cert: cas.local.client(t, "admin", "system:masters"), code: 401, message: unauthorized},
		{name: "user of the operator's CA with the right", cert: cas.operator.client(t, "reader"), code: 200, user: "reader"},
		{name: "user of the operator's CA without the right", cert: cas.operator.client(t, "nobody"), code: 403},
		{name: "name of the local identity from the operator's CA has no built-in right", cert: cas.operator.client(t, "system:kube-proxy"), code: 403},

		{name: "liveness", path: "/livez", code: 200, user: "system:anonymous"},
		{name: "one readiness check", path: "/readyz/ping?verbose", code: 200, user: "system:anonymous"},
		{name: "health by HEAD", method: http.MethodHead, path: "/healthz", code: 200, user: "system:anonymous"},
		{name: "health with a rejected token", path: "/readyz", token: "wrong", code: 200, user: "system:anonymous"},
		{name: "health with a certificate of another CA", path: "/livez", cert: cas.foreign.client(t, "x"), code: 200, user: "system:anonymous"},
		{name: "health by POST", method: http.MethodPost, path: "/livez", code: 401, message: unauthorized},
		{name: "path that only begins like health", path: "/livezz", code: 401, message: unauthorized},
		{name: "path that leads out of health", path: "/livez/../metrics", code: 401, message: unauthorized},
		{name: "path with a double slash", path: "/livez//x", code: 401, message: unauthorized},

		{name: "X-Remote headers give nothing", headers: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, code: 401, message: unauthorized},
		{name: "X-Remote headers add nothing", token: "nobody-token", headers: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"}}, code: 403},
		{name: "X-Remote headers are taken away", token: "reader-token", headers: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Extra-Scopes": {"all"}}, code: 200, user: "reader"},
		{name: "impersonation without the right", token: "reader-token", headers: http.Header{"Impersonate-User": {"admin"}}, code: 403,
			message: `services is forbidden: User "reader" cannot impersonate-on:user-info:list resource "services" in API group "" at the cluster scope: no RBAC policy matched`},
		{name: "impersonated group without a user", token: "nobody-token", headers: http.Header{"Impersonate-Group": {"system:masters"}, "X-Remote-User": {"admin"}}, code: 400},
		{name: "impersonated group without the right", token: "impersonator-token", headers: http.Header{"Impersonate-User": {"reader"}, "Impersonate-Group": {"system:masters"}}, code: 403},
		{name: "impersonation with the right", token: "impersonator-token", headers: http.Header{"Impersonate-User": {"reader"}}, code: 200, user: "reader"},
		{name: "impersonation with the right to another user", token: "impersonator-token", headers: http.Header{"Impersonate-User": {"system:kube-proxy"}}, code: 403},
		{name: "impersonation by the local identity", cert: local, headers: http.Header{"Impersonate-User": {"reader"}}, code: 403},

		{name: "token as WebSocket protocol", headers: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("nobody-token")) + ", other"},
		}, cert: local, code: 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			method, path := tc.method, tc.path
			if method == "" {
				method = http.MethodGet
			}
			if path == "" {
				path = services
			}
			req := httptest.NewRequest(method, path, nil)
			for name, values := range tc.headers {
				req.Header[name] = values
			}
			if tc.token != "" {
				req.Header.Set("Authorization", "Bearer "+tc.token)
			}
			if tc.cert != nil {
				withCertificate(req, tc.cert)
			}
			got := serve(t, handler, req)
			if got.code != tc.code || got.user != tc.user {
				t.Fatalf("got %d for user %q, want %d for %q: %s", got.code, got.user, tc.code, tc.user, got.status.Message)
			}
			if tc.message != "" && got.status.Message != tc.message {
				t.Errorf("got message\n%s, want\n%s", got.status.Message, tc.message)
			}
		})
	}
	for _, token := range []string{"reader-token", "nobody-token", "wrong-token", "own-credential"} {
		for _, form := range []string{token, base64.StdEncoding.EncodeToString([]byte(token))} {
			if strings.Contains(logs.String(), form) {
				t.Errorf("the token %q is in the log", token)
			}
		}
	}
	if !strings.Contains(logs.String(), "Forbidden") {
		t.Error("nothing was logged, so the check for tokens in the log means nothing")
	}
}

func TestLocalIdentityIsReadFromTheCertificateAlone(t *testing.T) {
	cas := newTestCAs(t)
	authenticator, err := NewLocalIdentityAuthenticator(cas.local.verify)
	if err != nil {
		t.Fatal(err)
	}
	valid := cas.local.client(t, "system:kube-proxy", "system:node-proxier")
	for _, tc := range []struct {
		name    string
		cert    *x509.Certificate
		ok, err bool
	}{
		{"no certificate", nil, false, false},
		{"local identity", valid, true, false},
		{"other CA", cas.operator.client(t, "system:kube-proxy"), false, true},
		{"expired", cas.local.expired(t, "system:kube-proxy"), false, true},
		{"other user", cas.local.client(t, "admin"), false, true},
		{"the CA itself", cas.local.cert, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := get(services, "some-token")
			if tc.cert != nil {
				withCertificate(req, tc.cert)
			}
			response, ok, err := authenticator.AuthenticateRequest(req)
			if ok != tc.ok || (err != nil) != tc.err {
				t.Fatalf("got %v, %v", ok, err)
			}
			if ok && !IsLocalIdentity(response.User) {
				t.Error("the user is not the local identity")
			}
			if req.Header.Get("Authorization") == "" {
				t.Error("the token was removed, which upstream needs")
			}
		})
	}
}

func TestMissingPartsAreErrors(t *testing.T) {
	if _, err := NewLocalIdentityAuthenticator(nil); err == nil {
		t.Error("no local client CA: no error")
	}
	if _, err := NewAuthenticator(AuthenticatorOptions{}); err == nil {
		t.Error("no sources: no error")
	}
	if _, err := NewAuthenticator(AuthenticatorOptions{TokenReviews: fakeTokens{}}); err == nil {
		t.Error("no local identity: no error")
	}
	if _, err := NewAuthorizer(nil, localRule); err == nil {
		t.Error("no reviewer: no error")
	}
	if _, err := NewAuthorizer(fakeAccess{}, nil); err == nil {
		t.Error("no rule: no error")
	}
	cas := newTestCAs(t)
	rootless, err := NewLocalIdentityAuthenticator(func() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, true })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := rootless.AuthenticateRequest(withCertificate(get(services, ""), cas.local.client(t, "system:kube-proxy"))); ok {
		t.Error("a certificate was accepted without a CA")
	}
}
