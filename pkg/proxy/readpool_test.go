// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pools returns the read pools of the own credential and of the tokens that upstream accepts.
func (f *frontServer) pools(t testing.TB) []*readPool {
	t.Helper()
	var pools []*readPool
	for _, ways := range []*roundTrippers{f.proxy.own, f.proxy.anonymous} {
		for _, base := range ways.bases {
			_, pool, err := base.current()
			if err != nil {
				t.Fatal(err)
			}
			if pool != nil {
				pools = append(pools, pool)
			}
		}
	}
	return pools
}

// busy makes the proxy open connections for reads as if there were many.
func (f *frontServer) busy(t testing.TB) {
	t.Helper()
	for _, pool := range f.pools(t) {
		pool.mu.Lock()
		pool.busy, pool.retry, pool.retryAt = 0, 0, time.Time{}
		pool.mu.Unlock()
	}
}

// connections returns how many connections for reads are open, and how many of them are idle.
func (f *frontServer) connections(t testing.TB) (open, idle int) {
	t.Helper()
	for _, pool := range f.pools(t) {
		pool.mu.Lock()
		open, idle = open+pool.open, idle+len(pool.idle)
		pool.mu.Unlock()
	}
	return open, idle
}

// readBusily reads target until reads of it go over HTTP/1.1 upstream.
func (f *frontServer) readBusily(t testing.TB, target string) {
	t.Helper()
	f.busy(t)
	eventually(t, "there are connections for reads", func() bool {
		response, body := f.do(t, "GET", target, "", "Authorization", clientAuthorization)
		// A connection of HTTP/2 that upstream has just closed costs a read now and then.
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("answer %d: %s", response.StatusCode, body)
		}
		_, idle := f.connections(t)
		return idle > 0
	})
}

func TestManyReadsHaveConnectionsOfTheirOwn(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	ask := func(method, target, body string, header ...string) string {
		t.Helper()
		response, got := front.do(t, method, target, body, append(header, "Authorization", clientAuthorization)...)
		if response.StatusCode != http.StatusOK || got != "ok" && method != "HEAD" {
			t.Fatalf("%s %s: answer %d: %s", method, target, response.StatusCode, got)
		}
		return upstream.last(t).Proto
	}
	for range 5 {
		if proto := ask("GET", "/api/v1/pods", ""); proto != "HTTP/2.0" {
			t.Errorf("a single read went over %s", proto)
		}
	}
	if open, _ := front.connections(t); open != 0 {
		t.Errorf("%d connections for a few reads", open)
	}
	front.readBusily(t, "/api/v1/pods")
	for _, tt := range []struct {
		method, target, body, want string
	}{
		{"GET", "/api/v1/pods", "", "HTTP/1.1"},
		{"HEAD", "/api/v1/pods", "", "HTTP/1.1"},
		{"GET", "/version", "", "HTTP/1.1"},
		{"GET", "/api/v1/pods?watch=true", "", "HTTP/2.0"},
		{"GET", "/api/v1/namespaces/default/pods/web/log", "", "HTTP/2.0"},
		{"GET", "/api/v1/pods?expect", "", "HTTP/2.0"},
		{"GET", "/api/v1/pods", "a body", "HTTP/2.0"},
		{"OPTIONS", "/api/v1/pods", "", "HTTP/2.0"},
		{"POST", "/api/v1/namespaces/default/pods", "{}", "HTTP/2.0"},
		{"DELETE", "/api/v1/namespaces/default/pods/web", "", "HTTP/2.0"},
	} {
		var header []string
		if strings.HasSuffix(tt.target, "?expect") {
			header = []string{"Expect", "100-continue"}
		}
		if proto := ask(tt.method, tt.target, tt.body, header...); proto != tt.want {
			t.Errorf("%s %s went over %s, want %s", tt.method, tt.target, proto, tt.want)
		}
	}
	// Whose token upstream does not know keeps to its own connections.
	front.do(t, "GET", "/api/v1/pods", "", "Authorization", "Bearer of-nobody")
	if last := upstream.last(t); last.Proto != "HTTP/2.0" {
		t.Errorf("an unknown token went over %s", last.Proto)
	}
	// The request is the same over both protocols.
	header := []string{"Accept", "application/json;as=Table", "X-Twice", "1", "X-Twice", "2", "Accept-Encoding", "gzip", "X-Forwarded-For", "10.0.0.1"}
	ask("GET", "/api/v1/pods?b=1&a=%2f;&b", "", header...)
	over1 := upstream.last(t)
	ask("GET", "/api/v1/pods?b=1&a=%2f;&b", "", append(header, "X-Other-Way", "1", "Te", "trailers")...)
	over2 := upstream.last(t)
	over2.Header.Del("X-Other-Way")
	over2.Header.Del("Te")
	if over1.Proto != "HTTP/1.1" || over2.Proto != "HTTP/2.0" || over1.RequestURI != over2.RequestURI || fmt.Sprint(over1.Header) != fmt.Sprint(over2.Header) {
		t.Errorf("over HTTP/1.1:\n%v\nover HTTP/2:\n%v", over1, over2)
	}
}

// TestAnswersStayWithTheirRequests reads from an upstream that answers in all ways there are, and badly, by clients that
// may not wait, over connections that may break at any time: no answer may end up with another request, and no connection
// may get lost.
func TestAnswersStayWithTheirRequests(t *testing.T) {
	t.Run("connections hold", func(t *testing.T) { testAnswersStayWithTheirRequests(t, false) })
	t.Run("connections break", func(t *testing.T) { testAnswersStayWithTheirRequests(t, true) })
}

func testAnswersStayWithTheirRequests(t *testing.T, breaks bool) {
	text := func(r *http.Request) string {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		return r.URL.Path + strings.Repeat("x", size)
	}
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		body := text(r)
		switch kind := r.URL.Query().Get("kind"); kind {
		case "sized":
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = io.WriteString(w, body)
		case "chunked":
			_, _ = io.WriteString(w, body[:len(body)/2])
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, body[len(body)/2:])
		case "trailers":
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, body)
			w.Header().Set("X-Sum", r.URL.Path)
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "unchanged":
			w.WriteHeader(http.StatusNotModified)
		case "early":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, body)
		case "close":
			if r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close")
			}
			_, _ = io.WriteString(w, body)
		case "refuse":
			if r.ProtoMajor == 1 {
				panic(http.ErrAbortHandler) // the connection is gone, and the read is not
			}
			_, _ = io.WriteString(w, body)
		case "break":
			_, _ = io.WriteString(w, body)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "slow":
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
			_, _ = io.WriteString(w, body)
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	_, _ = front.do(t, "GET", "/?kind=sized", "", "Authorization", clientAuthorization)
	front.busy(t)
	kinds := []string{"sized", "chunked", "trailers", "empty", "unchanged", "early", "close", "refuse", "break", "slow"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var clients, breaker sync.WaitGroup
	done := make(chan struct{})
	if breaks {
		chance := rand.New(rand.NewPCG(seed, 1<<32)) //nolint:gosec // to be repeated
		breaker.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(chance.IntN(20)) * time.Millisecond):
					upstream.CloseClientConnections()
				}
			}
		})
	}
	for c := range 12 {
		chance := rand.New(rand.NewPCG(seed, uint64(c))) //nolint:gosec // to be repeated
		client := front.client(t, c%2 == 0)
		clients.Go(func() {
			for i := range 150 {
				kind, method := kinds[chance.IntN(len(kinds))], "GET"
				if chance.IntN(8) == 0 {
					method = "HEAD"
				}
				path := fmt.Sprintf("/%d/%d", c, i)
				target := fmt.Sprintf("%s?kind=%s&size=%d", path, kind, chance.IntN(1<<chance.IntN(18)+1))
				r := front.request(t, method, target, "", "Authorization", clientAuthorization)
				patience := 30 * time.Second
				if chance.IntN(4) == 0 {
					patience = time.Duration(chance.IntN(5000)) * time.Microsecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				err := checkAnswer(client, r.WithContext(ctx), kind, path, text(r))
				if err != nil && ctx.Err() == nil && (!breaks || errors.Is(err, errWrongAnswer)) {
					t.Errorf("%s %s: %v", method, target, err)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	close(done)
	breaker.Wait()
	over1 := 0
	for _, seen := range upstream.seen() {
		if seen.Proto == "HTTP/1.1" {
			over1++
		}
	}
	t.Logf("%d reads over HTTP/1.1", over1)
	if over1 == 0 || over1 < 50 && !breaks {
		t.Error("too few to say anything")
	}
	eventually(t, "no connection is in use", func() bool {
		open, idle := front.connections(t)
		return open == idle && open <= maxReadConnections
	})
	if strings.Contains(front.log.String(), "goroutine") {
		t.Errorf("the log has a stack trace:\n%.2000s", front.log.String())
	}
}

// errWrongAnswer is what no broken connection may bring about.
var errWrongAnswer = errors.New("wrong answer")

// checkAnswer sends r and compares its answer. What upstream broke off must look broken.
func checkAnswer(client *http.Client, r *http.Request, kind, path, text string) error {
	response, err := client.Do(r)
	if err != nil {
		if kind == "break" {
			return nil
		}
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if kind == "break" && r.Method == http.MethodGet {
		if err == nil && response.StatusCode == http.StatusOK {
			return fmt.Errorf("%w: one that broke off looks complete", errWrongAnswer)
		}
		return nil
	}
	if kind == "break" || kind == "refuse" && response.StatusCode == http.StatusServiceUnavailable {
		return nil
	}
	want := map[string]int{"empty": http.StatusNoContent, "unchanged": http.StatusNotModified}[kind]
	if want == 0 {
		want = http.StatusOK
	} else {
		text = ""
	}
	if r.Method == http.MethodHead {
		text = ""
	}
	switch got := response.Header.Get("X-Path"); {
	case err != nil:
		return err
	case response.StatusCode == http.StatusServiceUnavailable && got == "":
		return fmt.Errorf("answer %d: %.200s", response.StatusCode, body)
	case response.StatusCode != want:
		return fmt.Errorf("%w: %d: %.200s", errWrongAnswer, response.StatusCode, body)
	case got != path:
		return fmt.Errorf("%w: that of %s", errWrongAnswer, got)
	case string(body) != text:
		return fmt.Errorf("%w: body of %d bytes, want %d: %.100s", errWrongAnswer, len(body), len(text), body)
	case kind == "trailers" && r.Method == http.MethodGet && response.Trailer.Get("X-Sum") != path:
		return fmt.Errorf("%w: trailers %v", errWrongAnswer, response.Trailer)
	}
	return nil
}

func TestReadsSurviveClosedConnections(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for range 10 {
		front.readBusily(t, "/api/v1/pods")
		upstream.CloseClientConnections()
	}
	front.readBusily(t, "/api/v1/pods")
	open, idle := front.connections(t)
	if open != idle || open > maxReadConnections {
		t.Errorf("%d connections, of which %d are idle", open, idle)
	}
}

// TestReadsThatHTTP1CannotAskFor go over HTTP/2 always.
func TestReadsThatHTTP1CannotAskFor(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	front.readBusily(t, "/api/v1/pods")
	for target, want := range map[string]string{
		"/api/v1/pods?labelSelector=a+in+(b)": "HTTP/1.1",
		"/api/v1/pods?labelSelector=a in (b)": "HTTP/2.0",
		"/api/v1/po ds":                       "HTTP/2.0",
	} {
		r := front.request(t, "GET", "/", "", "Authorization", clientAuthorization)
		path, query, _ := strings.Cut(target, "?")
		r.URL.Opaque, r.URL.RawQuery = path, query
		response, err := front.client(t, true).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if last := upstream.last(t); response.StatusCode != http.StatusOK || last.Proto != want || last.RequestURI != target {
			t.Errorf("%s: answer %d, asked for %s over %s", target, response.StatusCode, last.RequestURI, last.Proto)
		}
	}
}

// TestReadConnectionsAreKept after every kind of answer that leaves them usable.
func TestReadConnectionsAreKept(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sized":
			_, _ = io.WriteString(w, "ok")
		case "/chunked":
			_, _ = io.WriteString(w, "ok")
			w.(http.Flusher).Flush()
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/refused":
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, http2 := range []bool{true, false} {
		client := front.client(t, http2)
		for _, path := range []string{"/sized", "/chunked", "/empty", "/refused"} {
			for _, method := range []string{"GET", "HEAD"} {
				_, _ = front.do(t, "GET", "/sized", "", "Authorization", clientAuthorization) // a token that upstream knows
				front.readBusily(t, "/sized")
				before, _ := front.connections(t)
				response, err := client.Do(front.request(t, method, path, "", "Authorization", clientAuthorization))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if proto := upstream.last(t).Proto; proto != "HTTP/1.1" {
					t.Errorf("%s %s went over %s", method, path, proto)
				}
				eventually(t, "it is idle again", func() bool {
					open, idle := front.connections(t)
					return open == idle && open >= before
				})
			}
		}
	}
}

// TestAnswersThatNobodyAskedFor: neither what comes with an answer nor what comes later is taken for the next one.
func TestAnswersThatNobodyAskedFor(t *testing.T) {
	const other = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"
	written := make(chan struct{}, 100)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			_, _ = io.WriteString(w, "ok")
			return
		}
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		switch r.URL.Path {
		case "/at/once":
			_, _ = io.WriteString(connection, answer+other)
		case "/later":
			_, _ = io.WriteString(connection, answer)
			_, _ = io.WriteString(connection, other)
		case "/headers":
			_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\n")
			line := "X-Long: " + strings.Repeat("x", 1<<16) + "\r\n"
			for {
				if _, err := io.WriteString(connection, line); err != nil {
					break
				}
			}
		case "/early":
			for {
				if _, err := io.WriteString(connection, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
					break
				}
			}
		case "/status":
			_, _ = io.WriteString(connection, "HTTP/1.1 099 Odd\r\n\r\n")
		}
		written <- struct{}{}
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	if _, body := front.do(t, "GET", "/", "", "Authorization", clientAuthorization); body != "ok" {
		t.Fatal(body)
	}
	for _, path := range []string{"/at/once", "/later", "/headers", "/early", "/status"} {
		if path == "/later" && runtime.GOOS != "linux" {
			continue // only there can a connection be asked
		}
		front.busy(t)
		for range 20 {
			if _, body := front.do(t, "GET", path, "", "Authorization", clientAuthorization); body != "ok" {
				t.Fatalf("%s: %q", path, body)
			}
			if upstream.last(t).Proto == "HTTP/1.1" {
				<-written // what comes later is there, for this answer or an earlier one
			}
		}
	}
}

func TestReadsThatNobodyWaitsForReachUpstream(t *testing.T) {
	ended := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" && r.ProtoMajor == 1 {
			cancel() // the client goes away
			<-r.Context().Done()
			ended <- struct{}{}
			return
		}
		_, _ = io.WriteString(w, "ok")
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	front.readBusily(t, "/api/v1/pods")
	for _, pool := range front.pools(t) {
		pool.mu.Lock()
		pool.retry = time.Hour
		pool.mu.Unlock()
	}
	response, err := front.client(t, true).Do(front.request(t, "GET", "/wait", "", "Authorization", clientAuthorization).WithContext(ctx))
	if err == nil {
		_ = response.Body.Close()
		t.Fatalf("answer %d", response.StatusCode)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("upstream goes on")
	}
	eventually(t, "no connection is in use", func() bool {
		open, idle := front.connections(t)
		return open == idle
	})
	// What the client broke off is not replaced at once.
	open, _ := front.connections(t)
	for range 20 {
		if _, body := front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization); body != "ok" {
			t.Errorf("afterwards: %q", body)
		}
		if now, _ := front.connections(t); now > open {
			t.Fatalf("%d connections, %d after the read that was broken off", now, open)
		}
	}
}

func TestReadConnectionsThatAreIdleAreClosed(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, pool := range front.pools(t) {
		pool.mu.Lock()
		pool.keep = 50 * time.Millisecond
		pool.mu.Unlock()
	}
	front.busy(t)
	eventually(t, "one is open", func() bool {
		front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization)
		open, _ := front.connections(t)
		return open > 0
	})
	eventually(t, "none is open", func() bool {
		open, idle := front.connections(t)
		return open == 0 && idle == 0
	})
}

func TestReadConnectionsEndWithTheServer(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(arrived)
			<-release
		}
		_, _ = io.WriteString(w, "ok")
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	front.readBusily(t, "/api/v1/pods")
	answered := make(chan string, 1)
	go func() {
		body := "nothing"
		defer func() { answered <- body }() // also if do fails the test
		_, body = front.do(t, "GET", "/wait", "", "Authorization", clientAuthorization)
	}()
	<-arrived
	front.proxy.CloseIdleConnections()
	if open, idle := front.connections(t); open > 1 || idle != 0 {
		t.Errorf("%d connections, of which %d are idle", open, idle)
	}
	close(release)
	if body := <-answered; body != "ok" {
		t.Errorf("the read that was under way got %q", body)
	}
	eventually(t, "none is open", func() bool {
		open, _ := front.connections(t)
		return open == 0
	})
	for range 3 {
		if _, body := front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization); body != "ok" {
			t.Errorf("afterwards: %q", body)
		}
	}
	if open, _ := front.connections(t); open != 0 {
		t.Errorf("%d were opened afterwards", open)
	}
}
