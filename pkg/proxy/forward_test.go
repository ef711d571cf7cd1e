// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const clientAuthorization = "Bearer client-token"

var nastyTargets = []string{
	"/",
	"/api",
	"/api/v1/pods?limit=500&continue=a%2Bb%3D",
	"/api/v1/pods?",
	"/api/v1/pods?a=1;b=2",
	"/api/v1/pods?a=%zz&b=%",
	"/api/v1/pods?x=y&x=z&&=",
	"/api/v1/pods?labelSelector=app+in+(a,b)",
	"/api/v1/pods/",
	"/api/v1/pods//",
	"/api/v1//pods",
	"//api/v1/pods",
	"//evil.example.com/api/v1/pods",
	"/api/v1/../v1/pods",
	"/api/v1/./pods",
	"/api/v1/%2e%2e/pods",
	"/api/v1/services/..%2f..%2fpods",
	"/api/v1/namespaces/default/services/https:web:443/proxy/a%2Fb/c%2f?d=%2F",
	"/api/v1/namespaces/default/services/web/proxy/a%20b/%E2%82%AC/%00",
	"/api/v1/namespaces/default/services/web/proxy/a\"b<c>{d}|e^f`g",
	"/api/v1/namespaces/default/services/web/proxy/a!$&'()*+,;=:@~-._",
	"/api/v1/namespaces/default/services/web/proxy/a[b]c\\d",
	"/api/v1/namespaces/default/services/web/proxy/frag#ment",
	"/api/v1/namespaces/default/services/web/proxy/%41%7E%7e",
	"/apis/example.com/v1/things/" + strings.Repeat("x", 4000),
}

func TestRequestTargetIsPassedOnByteForByte(t *testing.T) {
	for _, speaks := range []string{"HTTP/2.0", "HTTP/1.1"} {
		upstream := newUpstream(t, nil)
		cfg := upstream.config()
		if speaks == "HTTP/1.1" {
			cfg.NextProtos = []string{"http/1.1"}
		}
		front := newFront(t, HandlerConfig{Upstream: cfg})
		connection := front.dial(t)
		for _, target := range nastyTargets {
			t.Run(speaks+" "+target[:min(len(target), 80)], func(t *testing.T) {
				connection.send(t, "GET "+target+" HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization)
				response := connection.response(t)
				if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || string(body) != "ok" {
					t.Fatalf("answer %d %s", response.StatusCode, body)
				}
				got := upstream.last(t)
				if got.RequestURI != target || got.Proto != speaks {
					t.Errorf("upstream saw %s %q, want %s %q", got.Proto, got.RequestURI, speaks, target)
				}
			})
		}
	}
}

func TestUpstreamPathPrefix(t *testing.T) {
	upstream := newUpstream(t, nil)
	cfg := upstream.config()
	cfg.Host += "/k8s/clusters/c%2Fa/"
	front := newFront(t, HandlerConfig{Upstream: cfg})
	front.do(t, "GET", "/api/v1/pods?a=b", "", "Authorization", clientAuthorization)
	if got, want := upstream.last(t).RequestURI, "/k8s/clusters/c%2Fa/api/v1/pods?a=b"; got != want {
		t.Errorf("upstream saw %q, want %q", got, want)
	}
}

func TestTargetsThatAreNoPathsAreRefused(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, line := range []string{"CONNECT evil.example.com:443 HTTP/1.1", "GET * HTTP/1.1", "CONNECT /api/v1/pods HTTP/1.1", "GET //a%2Fb\"c HTTP/1.1"} {
		connection := front.dial(t)
		connection.send(t, line, "Host: x", "Authorization: "+clientAuthorization)
		if response := connection.response(t); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: answer %d", line, response.StatusCode)
		}
	}
	if seen := upstream.seen(); len(seen) != 0 {
		t.Errorf("upstream saw %v", seen)
	}
}

func TestAbsoluteFormGoesToUpstreamOnly(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	connection := front.dial(t)
	connection.send(t, "GET https://evil.example.com/api/v1/pods?a=b HTTP/1.1", "Host: evil.example.com", "Authorization: "+clientAuthorization)
	if response := connection.response(t); response.StatusCode != http.StatusOK {
		t.Fatalf("answer %d", response.StatusCode)
	}
	if got := upstream.last(t).RequestURI; got != "/api/v1/pods?a=b" {
		t.Errorf("upstream saw %q", got)
	}
}

func TestHeadersBothWays(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Warning"] = []string{`299 - "one"`, `299 - "two"`}
		w.Header().Set("Audit-Id", "from-upstream")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "gone")
		w.WriteHeader(http.StatusAccepted)
	})
	cfg := upstream.config()
	cfg.NextProtos = []string{"http/1.1"} // HTTP/2 has no Connection header
	front := newFront(t, HandlerConfig{Upstream: cfg})
	connection := front.dial(t)
	connection.send(t, "GET /api/v1/pods HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization,
		"Accept: application/json", "Accept: application/yaml", "X-Twice: a", "X-Twice: b",
		"Connection: X-Private, Keep-Alive", "X-Private: secret", "Keep-Alive: timeout=5", "Proxy-Authorization: Basic Zm9v",
		"X-Forwarded-For: 10.0.0.1", "X-Forwarded-Proto: gopher",
		"X-Remote-User: admin", "x-remote-group: system:masters", "X-Remote-Extra-Scopes: all",
		"Impersonate-User: jane", "Impersonate-Group: dev", "Impersonate-Group: ops")
	response := connection.response(t)
	if diff := cmp.Diff([]string{`299 - "one"`, `299 - "two"`}, response.Header["Warning"]); diff != "" {
		t.Errorf("Warning (-want +got):\n%s", diff)
	}
	if response.StatusCode != http.StatusAccepted || response.Header.Get("X-Hop") != "" || len(response.Header["Audit-Id"]) != 1 {
		t.Errorf("answer %d %v", response.StatusCode, response.Header)
	}
	want := http.Header{
		"Accept":            {"application/json", "application/yaml"},
		"Authorization":     {clientAuthorization},
		"X-Twice":           {"a", "b"},
		"X-Forwarded-For":   {"10.0.0.1, 127.0.0.1"},
		"X-Forwarded-Proto": {"gopher"},
		"Impersonate-User":  {"jane"},
		"Impersonate-Group": {"dev", "ops"},
	}
	if diff := cmp.Diff(want, upstream.last(t).Header); diff != "" {
		t.Errorf("headers at upstream (-want +got):\n%s", diff)
	}
}

func TestBodyAndItsTrailersArriveUpstream(t *testing.T) {
	var trailer atomic.Value
	var sum atomic.Int64
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		sum.Store(n)
		trailer.Store(r.Trailer.Clone())
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, http2 := range []bool{true, false} {
		body := io.LimitReader(rand.Reader, 5<<20) // more than a guarded write may have
		r := front.request(t, "POST", "/api/v1/namespaces/default/services/web/proxy/upload", "", "Authorization", clientAuthorization)
		r.Body, r.ContentLength = io.NopCloser(body), -1
		r.Trailer = http.Header{"X-Sum": {"42"}}
		response, err := front.client(t, http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if sum.Load() != 5<<20 {
			t.Errorf("HTTP/2 %t: %d bytes arrived", http2, sum.Load())
		}
		if diff := cmp.Diff(http.Header{"X-Sum": {"42"}}, trailer.Load()); diff != "" {
			t.Errorf("HTTP/2 %t: trailer (-want +got):\n%s", http2, diff)
		}
	}
}

func TestTrailersOfTheAnswer(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, "body")
		want := r.URL.Query().Get("late")
		if want != "" {
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Late", want)
		}
		w.Header().Set("X-Announced", "yes")
	})
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		cfg := upstream.config()
		cfg.NextProtos = protocols
		front := newFront(t, HandlerConfig{Upstream: cfg})
		for target, want := range map[string]http.Header{
			"/api/v1/pods":          {"X-Announced": {"yes"}},
			"/api/v1/pods?late=too": {"X-Announced": {"yes"}, "X-Late": {"too"}},
		} {
			response, body := front.do(t, "GET", target, "", "Authorization", clientAuthorization)
			if diff := cmp.Diff(want, response.Trailer); diff != "" || body != "body" {
				t.Errorf("%s %v: body %q, trailer (-want +got):\n%s", target, protocols, body, diff)
			}
		}
	}
}

// TestTrailersThatDoNotCome: an answer ends, whatever was announced.
func TestTrailersThatDoNotCome(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Stream-Error")
		_, _ = io.WriteString(w, "body")
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, http2 := range []bool{true, false} {
		for _, header := range []string{"", "trailers"} {
			r := front.request(t, "GET", "/api/v1/namespaces/default/services/web/proxy/", "", "Authorization", clientAuthorization)
			if header != "" {
				r.Header.Set("Te", header)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			response, err := front.client(t, http2).Do(r.WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			cancel()
			if err != nil || string(body) != "body" || response.Trailer.Get("X-Stream-Error") != "" {
				t.Errorf("HTTP/2 %t, TE %q: %q, %v", http2, header, body, err)
			}
		}
	}
}

func TestSmallChunksArriveBeforeTheAnswerEnds(t *testing.T) {
	line := strings.Repeat("x", 299) + "\n"
	next := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sized") != "" {
			w.Header().Set("Content-Length", "900")
		}
		for range 3 {
			_, _ = io.WriteString(w, line)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, target := range []string{"/api/v1/pods?watch=true", "/api/v1/namespaces/default/pods/web/log?follow=true", "/api/v1/pods?sized=1"} {
		for _, http2 := range []bool{true, false} {
			response, err := front.client(t, http2).Do(front.request(t, "GET", target, "", "Authorization", clientAuthorization))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				got := make([]byte, len(line))
				start := time.Now()
				if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != line {
					t.Fatalf("%s: line %d: %v", target, i, err)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("%s: line %d took %v", target, i, took)
				}
				next <- struct{}{} // upstream writes no more until the line has arrived
			}
			_ = response.Body.Close()
		}
	}
}

func TestHeadersArriveBeforeTheBody(t *testing.T) {
	release := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	response, err := front.client(t, false).Do(front.request(t, "GET", "/api/v1/pods?watch=true", "", "Authorization", clientAuthorization))
	close(release)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestRequestAndAnswerStreamAtTheSameTime(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.(http.Flusher).Flush()
		buffer := make([]byte, 16)
		for {
			n, err := r.Body.Read(buffer)
			_, _ = w.Write(buffer[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, http2 := range []bool{true, false} {
		reader, writer := io.Pipe()
		r := front.request(t, "POST", "/api/v1/namespaces/default/services/web/proxy/echo", "", "Authorization", clientAuthorization)
		r.Body, r.ContentLength = reader, -1
		response, err := front.client(t, http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"hello", "world"} {
			_, _ = io.WriteString(writer, word)
			got := make([]byte, len(word))
			if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != word {
				t.Fatalf("HTTP/2 %t: echoed %q, %v", http2, got, err)
			}
		}
		_ = writer.Close()
		if rest, err := io.ReadAll(response.Body); err != nil || len(rest) != 0 {
			t.Errorf("HTTP/2 %t: rest %q, %v", http2, rest, err)
		}
		_ = response.Body.Close()
	}
}

func TestCompressionIsLeftToBothEnds(t *testing.T) {
	plain := bytes.Repeat([]byte(`{"kind":"Pod"}`), 300*1024/14)
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	_, _ = zip.Write(plain)
	_ = zip.Close()
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(compressed.Bytes())
			return
		}
		_, _ = w.Write(plain)
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	tests := []struct {
		accept, wantEncoding string
		wantBody             []byte
	}{
		{"gzip", "gzip", compressed.Bytes()},
		{"gzip;q=0.5, br", "gzip", compressed.Bytes()},
		{"identity", "", plain},
		{"", "", plain},
	}
	for _, tt := range tests {
		header := []string{"Authorization", clientAuthorization}
		if tt.accept != "" {
			header = append(header, "Accept-Encoding", tt.accept)
		}
		response, body := front.do(t, "GET", "/api/v1/pods", "", header...)
		if got := response.Header.Get("Content-Encoding"); got != tt.wantEncoding || body != string(tt.wantBody) {
			t.Errorf("%q: encoding %q, %d bytes, want %q, %d bytes", tt.accept, got, len(body), tt.wantEncoding, len(tt.wantBody))
		}
		if got := upstream.last(t).Header["Accept-Encoding"]; strings.Join(got, "") != tt.accept {
			t.Errorf("upstream was asked for %q, want %q", got, tt.accept)
		}
	}
}

func TestAbortedWatchesLeaveNothingBehind(t *testing.T) {
	var open atomic.Int64
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		_, _ = io.WriteString(w, "event\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ConnectTimeout: time.Minute})
	settle := func() int {
		var n int
		eventually(t, "goroutines settle", func() bool {
			before := n
			n = runtime.NumGoroutine()
			return n == before
		})
		return n
	}
	before := settle()
	const watches = 1000
	client := front.client(t, true)
	var group sync.WaitGroup
	opening := make(chan struct{}, 50)
	var bodies sync.Map
	for i := range watches {
		opening <- struct{}{}
		group.Go(func() {
			defer func() { <-opening }()
			response, err := client.Do(front.request(t, "GET", "/api/v1/pods?watch=true", "", "Authorization", clientAuthorization))
			if err != nil {
				t.Error(err)
				return
			}
			if event := make([]byte, 6); response.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(response.Body)
				t.Errorf("answer %d: %s", response.StatusCode, body)
			} else if _, err := io.ReadFull(response.Body, event); err != nil || string(event) != "event\n" {
				t.Errorf("event %q: %v", event, err)
			}
			bodies.Store(i, response.Body)
		})
	}
	group.Wait()
	if got := open.Load(); got != watches {
		t.Errorf("%d watches open at upstream, want %d", got, watches)
	}
	bodies.Range(func(_, body any) bool {
		_ = body.(io.Closer).Close()
		return true
	})
	eventually(t, "upstream's watches end", func() bool { return open.Load() == 0 })
	client.CloseIdleConnections()
	// The connections to upstream stay open: a handful of goroutines for each 250 streams or so.
	eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() < before+100 })
	if text := front.log.String(); strings.Contains(text, "panic") || strings.Contains(text, "goroutine") {
		t.Errorf("the log has a stack trace:\n%.2000s", text)
	}
}

func TestAbortOverHTTP1ReachesUpstream(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	connection := front.dial(t)
	connection.send(t, "GET /api/v1/pods HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization)
	<-started
	_ = connection.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("upstream's request goes on")
	}
	if text := front.log.String(); text != "" {
		t.Errorf("logged:\n%s", text)
	}
}

func TestAnswerThatBreaksOffIsNotPresentedAsComplete(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of i")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, http2 := range []bool{true, false} {
		response, err := front.client(t, http2).Do(front.request(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("HTTP/2 %t: %q looks complete", http2, body)
		}
		_ = response.Body.Close()
	}
	if text := front.log.String(); text != "" {
		t.Errorf("logged:\n%s", text)
	}
}

func TestTargetOfTrustsOnlyWhatWasDecidedOn(t *testing.T) {
	for name, r := range map[string]*http.Request{
		"request line says something else": {Method: "GET", RequestURI: "/api/v1/secrets", URL: &url.URL{Path: "/api/v1/services"}},
		"no request line":                  {Method: "GET", URL: &url.URL{Path: "/api/v1/services"}},
	} {
		got, err := targetOf(r)
		if err != nil || got.path != "/api/v1/services" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestHalfClosedClientsAreNotMisled: whoever closes its half of the connection may still read, and must not take what it
// gets then for the whole answer.
func TestHalfClosedClientsAreNotMisled(t *testing.T) {
	arrived := make(chan struct{}, 1)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("begun") != "" {
			_, _ = io.WriteString(w, "part")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, path := range []string{"/api/v1/pods?begun=1", "/api/v1/pods"} {
		for _, te := range []string{"X-Other: 1", "Te: trailers"} { // with the latter it is no plain read
			connection := front.dial(t)
			connection.send(t, "GET "+path+" HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization, te)
			<-arrived
			if err := connection.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(connection.r, nil)
			if err != nil {
				continue // no answer is fine
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				t.Errorf("%s with %s: complete with body %q", path, te, body)
			}
		}
	}
}
