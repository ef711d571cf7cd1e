// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

const (
	// soon is how long a change of upstream may take to reach a client.
	soon = slowdown * time.Second
	// patience bounds what has no limit of its own. A reflector that was
	// refused a few times pauses up to 16 s.
	patience = 30 * time.Second

	asJSON     = runtime.ContentTypeJSON
	asProtobuf = runtime.ContentTypeProtobuf
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// grid is a running grid-apiserver.
type grid struct {
	dir     string
	address string
	// local is the connection of the local identity.
	local  *rest.Config
	stores map[schema.GroupResource]*memory.Store

	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid when ended is closed
	once   sync.Once
}

// startGrid starts a grid-apiserver for the Node n1 in front of u, with an empty
// data directory. It need not be ready.
func startGrid(t testing.TB, u *upstream) *grid {
	t.Helper()
	return startGridIn(t, u, t.TempDir(), "127.0.0.1:0")
}

// readyGrid is startGrid, and waits until the server is ready.
func readyGrid(t testing.TB, u *upstream) *grid {
	t.Helper()
	g := startGrid(t, u)
	g.waitReady(t)
	return g
}

func startGridIn(t testing.TB, u *upstream, dir, address string) *grid {
	t.Helper()
	return startConfig(t, &server.Config{NodeName: "n1", Upstream: u.config(serverToken), DataDir: dir}, address)
}

func startConfig(t testing.TB, config *server.Config, address string) *grid {
	t.Helper()
	listener := listen(t, address)
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: listener}
	g := &grid{dir: config.DataDir, address: listener.Addr().String(), ended: make(chan struct{})}
	s, err := config.Complete().New(t.Context())
	if err != nil {
		listener.Close()
		t.Fatal(err)
	}
	g.stores = s.Stores()
	var ctx context.Context
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	prepared := s.PrepareRun()
	go func() {
		defer close(g.ended)
		g.err = prepared.Run(ctx)
	}()
	t.Cleanup(func() { g.stop(t) })
	if g.local, err = clientcmd.BuildConfigFromFlags("", filepath.Join(g.dir, "kube-proxy.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	g.local.QPS = -1
	return g
}

// stop ends the server and asserts that it does so in time, without an error.
func (g *grid) stop(t testing.TB) {
	t.Helper()
	g.once.Do(func() {
		start := time.Now()
		g.cancel()
		select {
		case <-g.ended:
		case <-time.After(patience):
			t.Fatal("the server does not stop")
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the server took %s to stop, want 5 s at most", took)
		}
		if g.err != nil {
			t.Errorf("the server stopped with %v", g.err)
		}
	})
}

// restart stops the server and starts one with the same address and data.
func (g *grid) restart(t testing.TB, u *upstream) *grid {
	t.Helper()
	g.stop(t)
	return startGridIn(t, u, g.dir, g.address)
}

// bearer is the connection of a holder of token.
func (g *grid) bearer(token string) *rest.Config {
	config := rest.AnonymousClientConfig(g.local)
	config.BearerToken = token
	return config
}

// client is a client of the local identity that speaks JSON.
func (g *grid) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	return newClient(t, g.as(asJSON))
}

// as is the connection of the local identity with a content type.
func (g *grid) as(contentType string) *rest.Config {
	config := rest.CopyConfig(g.local)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	return config
}

func newClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfigAndClient(config, newHTTPClient(t, config))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newHTTPClient returns a client with connections of its own.
func newHTTPClient(t testing.TB, config *rest.Config) *http.Client {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig})
	t.Cleanup(transport.CloseIdleConnections)
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: wrapped}
}

// answer is what a request was answered.
type answer struct {
	code   int
	header http.Header
	body   []byte
	took   time.Duration
}

// decode reads the body as JSON.
func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// get sends a GET with the credential in config.
func (g *grid) get(t testing.TB, config *rest.Config, path, accept string) answer {
	t.Helper()
	return fetch(t, newHTTPClient(t, config), "https://"+g.address+path, accept)
}

func fetch(t testing.TB, client *http.Client, url, accept string) answer {
	t.Helper()
	a, err := tryFetch(t.Context(), client, url, accept)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tryFetch(ctx context.Context, client *http.Client, url, accept string) (answer, error) {
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body, time.Since(start)}, err
}

// waitReady waits for /readyz, which needs no credential.
func (g *grid) waitReady(t testing.TB) {
	t.Helper()
	client := newHTTPClient(t, rest.AnonymousClientConfig(g.local))
	defer client.CloseIdleConnections()
	var last answer
	eventually(t, patience, func() bool {
		var err error
		last, err = tryFetch(t.Context(), client, "https://"+g.address+"/readyz?verbose", asJSON)
		return err == nil && last.code == http.StatusOK
	}, func() any { return string(last.body) })
}

// eventually polls until done, and fails the test with what state says if that
// takes longer than limit.
func eventually(t testing.TB, limit time.Duration, done func() bool, state func() any) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("not within %s: %v", limit, state())
	}
}
