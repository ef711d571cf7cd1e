// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// link passes connections on to a server, until it is cut.
type link struct {
	listener net.Listener
	target   string
	copying  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newLink(t testing.TB, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, target: target, conns: map[net.Conn]bool{}}
	l.copying.Go(l.serve)
	t.Cleanup(func() {
		listener.Close()
		l.setCut(true)
		l.copying.Wait()
	})
	return l
}

func (l *link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil || !l.add(near, far) {
			near.Close()
			if err == nil {
				far.Close()
			}
			continue
		}
		l.copying.Go(func() { l.pass(near, far) })
		l.copying.Go(func() { l.pass(far, near) })
	}
}

func (l *link) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		if !l.cut {
			l.conns[conn] = true
		}
	}
	return !l.cut
}

func (l *link) pass(from, to net.Conn) {
	buffer := make([]byte, 32*1024)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	l.mu.Lock()
	delete(l.conns, from)
	delete(l.conns, to)
	l.mu.Unlock()
}

// setCut ends all connections and refuses new ones, or stops to do so.
func (l *link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for conn := range l.conns {
			conn.Close()
		}
	}
}

// restartable is a view of node a with a link of its own, that can be stopped and started on the same data directory.
type restartable struct {
	t        testing.TB
	link     *link
	upstream *rest.Config
	dir      string

	mu     sync.Mutex
	config *rest.Config
	client kubernetes.Interface // JSON
	binary kubernetes.Interface // protobuf
	stop   func()
}

func newRestartable(t testing.TB, upstream *testserver.Server) *restartable {
	t.Helper()
	at, err := url.Parse(upstream.Upstream.Host)
	if err != nil {
		t.Fatal(err)
	}
	r := &restartable{t: t, link: newLink(t, at.Host), upstream: rest.CopyConfig(upstream.Upstream), dir: filepath.Join(t.TempDir(), "view")}
	r.upstream.Host = "https://" + r.link.listener.Addr().String()
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *restartable) start() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Error(err)
		return
	}
	config := server.Config{
		NodeName: "a", Upstream: r.upstream, DataDir: r.dir, StopGrace: 50 * time.Millisecond,
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener},
	}
	ctx, cancel := context.WithCancel(context.Background())
	view, err := config.Complete().New(ctx)
	if err != nil {
		cancel()
		listener.Close()
		r.t.Error(err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := view.PrepareRun().Run(ctx); err != nil {
			r.t.Errorf("the view: %v", err)
		}
	}()
	client := view.ClientConfig()
	client.BearerToken, client.QPS = r.upstream.BearerToken, -1
	protobuf := rest.CopyConfig(client)
	protobuf.ContentType, protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client.ContentType, client.AcceptContentTypes = "application/json", "application/json"
	r.mu.Lock()
	r.config, r.client, r.binary = client, kubernetes.NewForConfigOrDie(client), kubernetes.NewForConfigOrDie(protobuf)
	r.stop = func() {
		for _, c := range []kubernetes.Interface{r.client, r.binary} {
			c.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
		}
		cancel()
		<-ended
	}
	r.mu.Unlock()
	eventually(r.t, func(ctx context.Context) string {
		if body, err := r.client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").Do(ctx).Raw(); err != nil {
			return string(body)
		}
		return ""
	})
}

func (r *restartable) host() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Host
}

func (r *restartable) clients() (json, protobuf kubernetes.Interface) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client, r.binary
}
