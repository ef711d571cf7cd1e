// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// answersWithin is the promise of two seconds and what a busy machine adds.
const answersWithin = 4 * time.Second

// blackHole accepts nothing and answers nothing; the kernel completes the TCP handshake.
func blackHole(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}

// refused is an address that nobody listens on.
func refused(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Close()
	return strings.Replace(server.URL, "http:", "https:", 1)
}

func insecure(host string) *rest.Config {
	return &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func TestUpstreamAway(t *testing.T) {
	unroutable := insecure("https://192.0.2.1:6443")
	unroutable.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { // no packet ever comes back
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tests := []struct {
		name     string
		upstream *rest.Config
		want     int
	}{
		{"connection refused", insecure(refused(t)), http.StatusServiceUnavailable},
		{"accepts and stays silent", insecure(blackHole(t)), http.StatusGatewayTimeout},
		{"no answer to the dial", unroutable, http.StatusGatewayTimeout},
	}
	requests := []struct {
		method, target, body string
	}{
		{"GET", "/api/v1/pods", ""},
		{"GET", "/api/v1/pods?watch=true", ""},
		{"POST", "/api/v1/namespaces/default/pods", `{"kind":"Pod"}`},
		{"PATCH", "/api/v1/namespaces/default/services/web", `{}`},
		{"DELETE", "/api/v1/namespaces/default/pods/web", ""},
		{"POST", "/api/v1/namespaces/default/pods/web/exec", "upgrade"},
	}
	for _, tt := range tests {
		front := newFront(t, HandlerConfig{Upstream: tt.upstream})
		for _, request := range requests {
			t.Run(tt.name+" "+request.method+" "+request.target, func(t *testing.T) {
				t.Parallel()
				header := []string{"Authorization", clientAuthorization, "Content-Type", "application/merge-patch+json"}
				if request.body == "upgrade" {
					request.body = ""
					header = append(header, "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
				}
				start := time.Now()
				response, body := front.do(t, request.method, request.target, request.body, header...)
				if took := time.Since(start); took > answersWithin {
					t.Errorf("took %v", took)
				}
				status := decodeStatus(t, body)
				if response.StatusCode != tt.want || int(status.Code) != tt.want {
					t.Errorf("answer %d, Status %d, want %d: %s", response.StatusCode, status.Code, tt.want, body)
				}
				// Nothing has been sent, so even a write may be repeated.
				if got := response.Header.Get("Retry-After"); got != "1" {
					t.Errorf("Retry-After %q", got)
				}
			})
		}
	}
}

func TestStatusComesInTheEncodingOfTheClient(t *testing.T) {
	front := newFront(t, HandlerConfig{Upstream: insecure(refused(t))})
	for accept, want := range map[string]string{
		"":                                    "application/json",
		"application/json":                    "application/json",
		"application/yaml":                    "application/yaml",
		"application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf",
		"text/html":                           "application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io, application/json": "application/json",
	} {
		response, body := front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization, "Accept", accept)
		if got := response.Header.Get("Content-Type"); got != want || response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%q: answer %d as %q, want %q", accept, response.StatusCode, got, want)
		}
		if want == "application/vnd.kubernetes.protobuf" && !strings.HasPrefix(body, "k8s\x00") {
			t.Errorf("%q: body %q", accept, body)
		}
	}
}

func TestUntrustedUpstreamIsNotUsed(t *testing.T) {
	upstream := newUpstream(t, nil)
	cfg := upstream.config()
	cfg.ServerName = "somebody-else.example.org"
	front := newFront(t, HandlerConfig{Upstream: cfg})
	response, body := front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization)
	if decodeStatus(t, body); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("answer %d %s", response.StatusCode, body)
	}
	if seen := upstream.seen(); len(seen) != 0 {
		t.Errorf("upstream saw %+v", seen)
	}
}

func TestBrokenWriteIsNotOfferedForRepetition(t *testing.T) {
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for method, want := range map[string]string{"GET": "1", "POST": "", "DELETE": ""} {
		response, body := front.do(t, method, "/api/v1/namespaces/default/pods/web", "{}", "Authorization", clientAuthorization)
		if decodeStatus(t, body); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != want {
			t.Errorf("%s: answer %d, Retry-After %q: %s", method, response.StatusCode, response.Header.Get("Retry-After"), body)
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	arrived := make(chan struct{}, 10)
	release := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Begin") != "" {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
			_, _ = io.WriteString(w, "late")
		}
	})
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), Clock: clock, ConnectTimeout: 10 * time.Second})

	type answer struct {
		code int
		body string
		err  error
	}
	send := func(method, target string, header ...string) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			response, err := front.client(t, false).Do(front.request(t, method, target, "", append(header, "Authorization", clientAuthorization)...))
			if err != nil {
				out <- answer{err: err}
				return
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			out <- answer{response.StatusCode, string(body), err}
		}()
		<-arrived
		return out
	}

	get, list, begun := send("GET", "/api/v1/namespaces/default/pods/web"), send("DELETE", "/api/v1/namespaces/default/pods/web"), send("GET", "/api/v1/pods", "Begin", "1")
	watch := send("GET", "/api/v1/pods?watch=true")
	logs := send("GET", "/api/v1/namespaces/default/pods/web/log?follow=true")
	exec := send("POST", "/api/v1/namespaces/default/pods/web/exec")
	clock.Step(59 * time.Second)
	select {
	case early := <-get:
		t.Fatalf("ended before the timeout: %+v", early)
	default:
	}
	await := func(pending <-chan answer) answer {
		t.Helper()
		for range 1000 {
			clock.Step(time.Second) // a timer may have been set just now, for a second from now
			select {
			case got := <-pending:
				return got
			case <-time.After(10 * time.Millisecond):
			}
		}
		t.Fatal("no answer")
		return answer{}
	}
	for name, pending := range map[string]<-chan answer{"GET": get, "DELETE": list} {
		got := await(pending)
		if status := decodeStatus(t, got.body); got.code != http.StatusGatewayTimeout || status.Reason != metav1.StatusReasonTimeout {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := await(begun); got.err == nil {
		t.Errorf("an answer that was cut off looks complete: %+v", got)
	}
	clock.Step(time.Hour)
	close(release)
	for name, pending := range map[string]<-chan answer{"watch": watch, "logs": logs, "exec": exec} {
		if got := <-pending; got.code != http.StatusOK || got.body != "late" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// relay is a link to an upstream that can be cut: what is open hangs, and nothing new gets through.
type relay struct {
	net.Listener
	cut chan struct{}
}

func newRelay(t *testing.T, to net.Addr) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, cut: make(chan struct{})}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	ctx := t.Context()
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.serve(ctx, near, to) })
		}
	})
	return r
}

// serve passes on what comes from either side until one of them ends, or ctx.
func (r *relay) serve(ctx context.Context, near net.Conn, to net.Addr) {
	defer near.Close()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	pass := func(dst, src net.Conn) {
		defer func() { ended <- struct{}{} }()
		buffer := make([]byte, 4096)
		for {
			n, err := src.Read(buffer)
			select {
			case <-r.cut:
				<-ctx.Done()
				return
			default:
			}
			if _, failed := dst.Write(buffer[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	go pass(near, far)
	go pass(far, near)
	select {
	case <-ended:
	case <-ctx.Done():
	}
	_, _ = near.Close(), far.Close()
	<-ended
}

func TestLinkThatGoesAwayUnderAnOpenConnection(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%t", busy), func(t *testing.T) {
			upstream := newUpstream(t, nil)
			network := newRelay(t, upstream.Listener.Addr())
			cfg := upstream.config()
			cfg.Host = "https://" + network.Addr().String()
			front := newFront(t, HandlerConfig{Upstream: cfg})
			for range 2 { // a token that upstream has accepted goes over another connection from then on
				if response, _ := front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization); response.StatusCode != http.StatusOK {
					t.Fatalf("answer %d", response.StatusCode)
				}
			}
			if busy {
				front.readBusily(t, "/api/v1/pods")
			}
			close(network.cut)
			for method, wantRetry := range map[string]string{"GET": "1", "DELETE": ""} {
				start := time.Now()
				response, body := front.do(t, method, "/api/v1/namespaces/default/pods/web", "", "Authorization", clientAuthorization)
				if took := time.Since(start); took > answersWithin {
					t.Errorf("%s took %v", method, took)
				}
				if decodeStatus(t, body); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != wantRetry {
					t.Errorf("%s: answer %d, Retry-After %q: %s", method, response.StatusCode, response.Header.Get("Retry-After"), body)
				}
			}
		})
	}
}

func TestSlowAnswerOnOldConnectionIsAwaited(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/slow" {
			timer := time.NewTimer(stallAfter + time.Second) // longer than the proxy waits before it asks
			defer timer.Stop()
			<-timer.C
		}
		_, _ = io.WriteString(w, "ok")
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ConnectTimeout: 10 * time.Second})
	for _, target := range []string{"/api/v1/pods", "/api/v1/slow"} {
		if _, body := front.do(t, "GET", target, "", "Authorization", clientAuthorization); body != "ok" {
			t.Errorf("%s: %s", target, body)
		}
	}
}
