// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// likeKubeAPIServer answers as kube-apiserver does: a bad token gets 401 and, over HTTP/2, costs its connection.
func likeKubeAPIServer(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer good") {
		if r.ProtoMajor == 2 {
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

func TestBadTokensDoNotHurtOtherClients(t *testing.T) {
	const writers, each = 4, 30
	tests := []struct {
		name    string
		token   func(i int) string
		target  string
		size    int
		chunked bool
	}{
		{"known token", func(int) string { return "good" }, "/api/v1/namespaces/default/pods", 2000, false},
		{"known token, body of unknown length", func(int) string { return "good" }, "/api/v1/namespaces/default/pods", 2000, true},
		{"known token, large body", func(int) string { return "good" }, "/api/v1/namespaces/default/pods", maxReplayedBody + 1, false},
		{"known token, guarded write", func(int) string { return "good" }, "/api/v1/namespaces/default/services", 2000, false},
		{"new token each time", func(i int) string { return "good" + strconv.Itoa(i) }, "/api/v1/namespaces/default/pods", 2000, false},
		{"new token each time, body of unknown length", func(i int) string { return "good" + strconv.Itoa(i) }, "/api/v1/namespaces/default/pods", 2000, true},
		{"new token each time, large body", func(i int) string { return "good" + strconv.Itoa(i) }, "/api/v1/namespaces/default/pods", maxReplayedBody + 1, false},
		{"new token each time, guarded write", func(i int) string { return "good" + strconv.Itoa(i) }, "/api/v1/namespaces/default/services", maxReplayedBody + 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			upstream := newUpstream(t, likeKubeAPIServer)
			front := newFront(t, HandlerConfig{Upstream: upstream.config(), ConnectTimeout: time.Minute})
			front.do(t, "GET", "/api/v1/pods", "", "Authorization", "Bearer good")
			stop := make(chan struct{})
			var bad, good sync.WaitGroup
			bad.Go(func() {
				client := front.client(t, false)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					response, err := client.Do(front.request(t, "GET", "/api/v1/pods", "", "Authorization", fmt.Sprintf("Bearer bad%d", i)))
					if err == nil {
						_, _ = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
					}
				}
			})
			var next atomic.Int64
			for range writers {
				good.Go(func() {
					client := front.client(t, true)
					for range each {
						body := strings.Repeat("x", tt.size)
						r := front.request(t, "POST", tt.target, body, "Authorization", "Bearer "+tt.token(int(next.Add(1))))
						if tt.chunked {
							r.ContentLength = -1
						}
						response, err := client.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						got, err := io.ReadAll(response.Body)
						_ = response.Body.Close()
						if response.StatusCode != http.StatusOK || string(got) != body || err != nil {
							t.Errorf("answer %d, %d bytes, %v: %.300s", response.StatusCode, len(got), err, got)
						}
					}
				})
			}
			good.Wait()
			close(stop)
			bad.Wait()
			for name, budget := range map[string]*byteBudget{"known": front.proxy.replays.known, "unknown": front.proxy.replays.unknown} {
				eventually(t, name+" bodies are given back", func() bool { return reserved(budget, replayBudget) == 0 })
			}
		})
	}
}

// An API server closes connections of good tokens too: kube-apiserver does so with --goaway-chance, and when it stops.
func TestWritesSurviveConnectionsThatUpstreamCloses(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.Header().Set("Connection", "close")
		}
		likeKubeAPIServer(w, r)
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), ConnectTimeout: time.Minute})
	front.do(t, "GET", "/api/v1/pods", "", "Authorization", "Bearer good")
	var group sync.WaitGroup
	for writer := range 6 {
		group.Go(func() {
			client := front.client(t, true)
			for range 40 {
				method, target, body := "POST", "/api/v1/namespaces/default/pods", strings.Repeat("x", 2000)
				switch writer {
				case 0, 1:
					method, body = "GET", ""
				case 2:
					target = "/api/v1/namespaces/default/services"
				}
				response, err := client.Do(front.request(t, method, target, body, "Authorization", "Bearer good"))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK || string(got) != body || err != nil {
					t.Errorf("answer %d, %d bytes, %v: %.300s", response.StatusCode, len(got), err, got)
				}
			}
		})
	}
	group.Wait()
}

func TestTokensAreKnownByUpstreamsAnswer(t *testing.T) {
	var answer atomic.Int64
	var address atomic.Value
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		address.Store(r.RemoteAddr)
		w.WriteHeader(int(answer.Load()))
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	ask := func(token, method string, status int) string {
		t.Helper()
		answer.Store(int64(status))
		front.do(t, method, "/api/v1/pods", "", "Authorization", "Bearer "+token)
		return address.Load().(string)
	}
	knownWay := func(token string) bool {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return front.proxy.tokens.has(front.proxy.tokens.key(tokensOf(r)))
	}
	untried := ask("a", "GET", http.StatusOK)
	if trusted := ask("a", "GET", http.StatusOK); trusted == untried {
		t.Error("a known token shares a connection with those that are not")
	}
	if other := ask("b", "GET", http.StatusBadRequest); other != untried {
		t.Error("an unknown token goes over another connection than the first one did")
	}
	if other := ask("a", "GET", http.StatusUnauthorized); other == untried || knownWay("a") {
		t.Error("a token is known after a 401")
	}
	if other := ask("a", "GET", http.StatusOK); other != untried {
		t.Error("a token that got a 401 is still with the known ones")
	}
	for status, want := range map[int]bool{200: true, 201: true, 204: true, 403: true, 404: true, 301: false, 400: false, 401: false, 429: false, 500: false, 503: false} {
		token := strconv.Itoa(status)
		ask(token, "POST", status)
		if got := knownWay(token); got != want {
			t.Errorf("after a %d: known %t, want %t", status, got, want)
		}
	}
	ask("preflight", "OPTIONS", http.StatusNoContent)
	if knownWay("preflight") {
		t.Error("a preflight makes a token known")
	}
	for i := range 2 * maxKnownTokens {
		front.proxy.tokens.note(tokenKey{byte(i), byte(i >> 8)}, false, "GET", http.StatusOK)
	}
	if got := front.proxy.tokens.known.Len(); got > maxKnownTokens {
		t.Errorf("%d tokens are kept", got)
	}
}

func TestTokenKeysTellTokensApart(t *testing.T) {
	tokens := newKnownTokens()
	request := func(authorization, protocolToken string) *http.Request {
		r := &http.Request{Header: http.Header{}}
		if authorization != "" {
			r.Header.Set("Authorization", "Bearer "+authorization)
		}
		if protocolToken != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-Websocket-Protocol", bearerProtocol+base64.RawURLEncoding.EncodeToString([]byte(protocolToken))+", other")
		}
		return r
	}
	seen := map[tokenKey]string{}
	for _, pair := range [][2]string{{"a", ""}, {"b", ""}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"a", "a"}} {
		key := tokens.key(tokensOf(request(pair[0], pair[1])))
		if other, ok := seen[key]; ok {
			t.Errorf("%v and %s have the same key", pair, other)
		}
		seen[key] = fmt.Sprint(pair)
	}
	if tokens.key(tokensOf(request("a", ""))) != tokens.key(tokensOf(request("", "a"))) {
		t.Error("the same token by other means has another key")
	}
	if tokens.key(tokensOf(request("a", ""))) == newKnownTokens().key(tokensOf(request("a", ""))) {
		t.Error("keys are the same in every process")
	}
}

// reuses reports whether a second request of an HTTP/2 client goes over the connection of the first.
func (f *frontServer) reuses(t *testing.T, wantStatus int, header ...string) bool {
	t.Helper()
	client := f.client(t, true)
	var reused bool
	for range 2 {
		r := f.request(t, "GET", "/api/v1/pods", "", header...)
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}))
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != wantStatus || response.ProtoMajor != 2 {
			t.Fatalf("answer %d over %s, want %d", response.StatusCode, response.Proto, wantStatus)
		}
	}
	return reused
}

func TestUnauthorizedClientsLoseTheirHTTP2Connection(t *testing.T) {
	upstream := newUpstream(t, likeKubeAPIServer)
	http1 := upstream.config()
	http1.NextProtos = []string{"http/1.1"}
	front, front1 := newFront(t, HandlerConfig{Upstream: upstream.config()}), newFront(t, HandlerConfig{Upstream: http1})
	tests := []struct {
		name   string
		front  *frontServer
		status int
		header []string
		want   bool
	}{
		{"good token", front, http.StatusOK, []string{"Authorization", "Bearer good"}, true},
		{"forbidden", front, http.StatusForbidden, []string{asLocalIdentity, "1"}, true},
		{"refused by upstream", front, http.StatusUnauthorized, []string{"Authorization", "Bearer bad"}, false},
		{"refused by upstream over HTTP/1.1", front1, http.StatusUnauthorized, []string{"Authorization", "Bearer bad"}, false},
		{"refused here", front, http.StatusUnauthorized, nil, false},
	}
	for _, tt := range tests {
		if got := tt.front.reuses(t, tt.status, tt.header...); got != tt.want {
			t.Errorf("%s: connection reused %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestNoTokenIsLoggedAtAnyVerbosity(t *testing.T) {
	t.Cleanup(klog.CaptureState().Restore)
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-v=10", "-logtostderr=false", "-alsologtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	klog.SetOutput(&log)

	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	down := newFront(t, HandlerConfig{Upstream: insecure(refused(t))})
	secret := "the-clients-own-secret"
	encoded := base64.RawURLEncoding.EncodeToString([]byte(secret))
	for _, f := range []*frontServer{front, down} {
		for range 2 { // as an unknown and as a known token
			f.do(t, "GET", "/api/v1/pods", "", "Authorization", "Bearer "+secret)
			f.do(t, "GET", "/api/v1/nodes", "", asLocalIdentity, "1")
			f.do(t, "GET", "/api/v1/namespaces/default/pods/web/exec", "", "Connection", "Upgrade", "Upgrade", "websocket",
				"Sec-Websocket-Protocol", bearerProtocol+encoded+", v5.channel.k8s.io")
			f.do(t, "PUT", guardedTarget, "{}", "Authorization", "Bearer "+secret)
		}
	}
	klog.Flush()
	text := log.String()
	if !bytes.Contains([]byte(text), []byte("Request could not be proxied")) {
		t.Errorf("the log is not captured:\n%s", text)
	}
	for _, bad := range []string{secret, encoded, serverToken} {
		if strings.Contains(text, bad) {
			t.Errorf("%q was logged:\n%s", bad, text)
		}
	}
}
