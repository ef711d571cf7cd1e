// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// logs collects what the package and client-go write at the highest verbosity.
var logs lockedBuffer

type lockedBuffer struct {
	lock sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.Buffer.String()
}

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-one_output", "-stderrthreshold=FATAL", "-v=10"}); err != nil {
		panic(err)
	}
	klog.SetOutput(&logs)
	Register()
	goleak.VerifyTestMain(m)
}

// answers is what upstream says, whatever the transport.
type answers struct {
	users   map[string]authenticationv1.UserInfo // by token
	allowed func(authorizationv1.SubjectAccessReviewSpec) bool

	// before runs at the start of each review; an error makes it fail.
	before func(context.Context) error

	tokenReviews, accessReviews atomic.Int32
}

var errUpstream = errors.New("upstream fails")

func (a *answers) token(ctx context.Context, review *authenticationv1.TokenReview) error {
	a.tokenReviews.Add(1)
	if a.before != nil {
		if err := a.before(ctx); err != nil {
			return err
		}
	}
	review.Status.User, review.Status.Authenticated = a.users[review.Spec.Token]
	if !review.Status.Authenticated {
		review.Status.Error = "invalid bearer token"
	}
	return nil
}

func (a *answers) access(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
	a.accessReviews.Add(1)
	if a.before != nil {
		if err := a.before(ctx); err != nil {
			return err
		}
	}
	review.Status.Allowed = a.allowed(review.Spec)
	if !review.Status.Allowed {
		review.Status.Reason = "no RBAC policy matched"
	}
	return nil
}

// The fake clients answer without a network, for tests with virtual time.
type fakeTokens struct{ *answers }

func (f fakeTokens) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	return review, f.token(ctx, review)
}

type fakeAccess struct{ *answers }

func (f fakeAccess) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	return review, f.access(ctx, review)
}

// newUpstream serves answers over TLS. The config's own credential is a token.
func newUpstream(t *testing.T, a *answers) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer own-credential" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch review := object.(type) {
		case *authenticationv1.TokenReview:
			err = a.token(req.Context(), review)
		case *authorizationv1.SubjectAccessReview:
			err = a.access(req.Context(), review)
		default:
			err = fmt.Errorf("unexpected object %T", object)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, BearerToken: "own-credential"}
	config.CAData = pemOf(server.Certificate())
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// The transport is shared by client-go among equal configs.
	t.Cleanup(func() { (&http.Client{Transport: transport}).CloseIdleConnections() })
	return config
}

// refusing is a config for an address where nobody listens.
func refusing(t *testing.T) *rest.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return &rest.Config{Host: "https://" + listener.Addr().String()}
}

// localRule allows what kube-proxy reads, as the server's real rule does.
func localRule(a authorizer.Attributes) bool {
	return a.IsResourceRequest() && a.IsReadOnly() && a.GetSubresource() == "" &&
		(a.GetResource() == "services" || a.GetResource() == "endpointslices")
}

// newChain is the handler chain around a handler that answers with the user and
// what has remained of the credentials.
func newChain(t *testing.T, tokens TokenReviewer, access SubjectAccessReviewer, cas *testCAs) http.Handler {
	t.Helper()
	local, err := NewLocalIdentityAuthenticator(cas.local.verify)
	if err != nil {
		t.Fatal(err)
	}
	authenticator, err := NewAuthenticator(AuthenticatorOptions{TokenReviews: tokens, LocalIdentity: local, ClientCA: cas.operator.verify})
	if err != nil {
		t.Fatal(err)
	}
	authorizer, err := NewAuthorizer(access, localRule)
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		u, _ := request.UserFrom(req.Context())
		for name := range req.Header {
			switch name {
			case "Authorization", "X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes", "Impersonate-User", "Impersonate-Group":
				t.Errorf("the header %s has reached the handler", name)
			}
		}
		w.Header().Set("User", u.GetName())
		_ = json.NewEncoder(w).Encode(u.GetGroups())
	})
	handler = WithAuthorization(handler, authorizer, scheme.Codecs)
	handler = WithImpersonation(handler, authorizer, scheme.Codecs)
	handler = WithAuthentication(handler, authenticator, scheme.Codecs)
	return genericapifilters.WithRequestInfo(handler, &request.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	})
}

type result struct {
	code       int
	user       string
	status     metav1.Status
	retryAfter string
	took       time.Duration
}

func serve(t *testing.T, handler http.Handler, req *http.Request) result {
	t.Helper()
	recorder := httptest.NewRecorder()
	start := time.Now()
	handler.ServeHTTP(recorder, req)
	r := result{code: recorder.Code, user: recorder.Header().Get("User"), retryAfter: recorder.Header().Get("Retry-After"), took: time.Since(start)}
	if r.code != http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &r.status); err != nil || r.status.Kind != "Status" || int(r.status.Code) != r.code {
			t.Errorf("the answer %d is not a Status: %v: %s", r.code, err, recorder.Body)
		}
	}
	return r
}

const services = "/api/v1/services"

func get(path, token string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}
