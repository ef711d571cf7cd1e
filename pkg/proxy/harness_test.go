// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

const (
	serverToken     = "the-servers-own-secret"
	asLocalIdentity = "Test-Local-Identity"
)

// localIdentityByHeader stands in for the check of the client certificate.
var localIdentityByHeader = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	if r.Header.Get(asLocalIdentity) == "" {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "system:kube-proxy"}}, true, nil
})

// recorded is a request as upstream saw it.
type recorded struct {
	Method, RequestURI, Proto string
	Header                    http.Header
	Body                      string
	Trailer                   http.Header
}

// upstreamServer is an API server that remembers what it was asked. HTTP/2 and HTTP/1.1 over TLS.
type upstreamServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recorded
}

// newUpstream starts one whose answers come from handler; nil answers "ok" after reading the body.
func newUpstream(t testing.TB, handler http.HandlerFunc) *upstreamServer {
	t.Helper()
	u := &upstreamServer{}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler != nil {
			u.record(r, "")
			handler(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		u.record(r, string(body))
		_, _ = io.WriteString(w, "ok")
	}))
	u.EnableHTTP2 = true
	u.Config.ErrorLog = log.New(io.Discard, "", 0)
	u.StartTLS()
	t.Cleanup(u.Close)
	return u
}

func (u *upstreamServer) record(r *http.Request, body string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, recorded{
		Method: r.Method, RequestURI: r.RequestURI, Proto: r.Proto,
		Header: r.Header.Clone(), Body: body, Trailer: r.Trailer.Clone(),
	})
}

func (u *upstreamServer) seen() []recorded {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]recorded(nil), u.requests...)
}

// last returns the newest request, and fails the test if there was none.
func (u *upstreamServer) last(t testing.TB) recorded {
	t.Helper()
	seen := u.seen()
	if len(seen) == 0 {
		t.Fatal("nothing reached upstream")
	}
	return seen[len(seen)-1]
}

// config is the server's own connection to this upstream, with its own token.
func (u *upstreamServer) config() *rest.Config {
	return &rest.Config{
		Host:            u.URL,
		BearerToken:     serverToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: certificatePEM(u.Certificate())},
	}
}

func certificatePEM(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// frontServer is the node's server with nothing but the proxy in it.
type frontServer struct {
	*httptest.Server
	proxy *handler
	log   *lockedBuffer
}

func newFront(t testing.TB, cfg HandlerConfig) *frontServer {
	t.Helper()
	if cfg.LocalIdentity == nil {
		cfg.LocalIdentity = localIdentityByHeader
	}
	if cfg.NodeName == "" {
		cfg.NodeName = ownNode
	}
	built, err := NewHandler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	front := &frontServer{proxy: built.(*handler), log: &lockedBuffer{}}
	front.Server = httptest.NewUnstartedServer(withRequestInfo(built))
	front.EnableHTTP2 = true
	front.Config.ErrorLog = log.New(front.log, "", 0)
	front.StartTLS()
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		built.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	})
	return front
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// client returns a client that decompresses nothing, over HTTP/2 or HTTP/1.1.
func (f *frontServer) client(t testing.TB, http2 bool) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(f.Certificate())
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2:  http2,
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (f *frontServer) request(t testing.TB, method, target, body string, header ...string) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+target, reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// do sends a request over HTTP/1.1 and returns the answer with its body read.
func (f *frontServer) do(t testing.TB, method, target, body string, header ...string) (*http.Response, string) {
	t.Helper()
	response, err := f.client(t, false).Do(f.request(t, method, target, body, header...))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(data)
}

// dial opens a raw TLS connection that speaks HTTP/1.1.
func (f *frontServer) dial(t testing.TB) *rawConnection {
	t.Helper()
	connection, err := tls.Dial("tcp", f.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &rawConnection{connection, bufio.NewReader(connection)}
}

type rawConnection struct {
	*tls.Conn
	r *bufio.Reader
}

// send writes lines as the head of a request.
func (c *rawConnection) send(t testing.TB, lines ...string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "%s\r\n\r\n", strings.Join(lines, "\r\n")); err != nil {
		t.Fatal(err)
	}
}

func (c *rawConnection) response(t testing.TB) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func decodeStatus(t testing.TB, body string) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatalf("not a Status: %v: %q", err, body)
	}
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure {
		t.Errorf("not a failure Status: %q", body)
	}
	return status
}

// eventually polls until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.NewTimer(15 * time.Second)
	defer timeout.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-timeout.C:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
