// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Clients that have not proven who they are lose their HTTP/2 connection, whatever the
// reason; others keep it.
func TestConnectionsOfStrangersAreClosed(t *testing.T) {
	for _, tc := range []struct {
		name         string
		path, token  string
		tokens       func(context.Context) error
		access       func(context.Context) error
		busy, closed bool
		code         int
	}{
		{name: "user", path: services, token: "reader-token", code: 200},
		{name: "user without the right", path: services, token: "nobody-token", code: 403},
		{name: "user whose right cannot be reviewed", path: services, token: "reader-token", access: fail, code: 503},
		{name: "no credential", path: services, code: 401, closed: true},
		{name: "rejected token", path: services, token: "wrong", code: 401, closed: true},
		{name: "token that cannot be reviewed", path: services, token: "reader-token", tokens: fail, code: 503, closed: true},
		{name: "token for which there is no slot", path: services, token: "reader-token", tokens: hang, busy: true, code: 503, closed: true},
		{name: "health", path: "/livez", code: 200, closed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tokens, access := cluster(), cluster()
			tokens.before, access.before = tc.tokens, tc.access
			handler := newChain(t, fakeTokens{tokens}, fakeAccess{access}, newTestCAs(t))

			var closed atomic.Int32
			server := httptest.NewUnstartedServer(handler)
			server.EnableHTTP2 = true
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed.Add(1)
				}
			}
			server.StartTLS()
			t.Cleanup(server.Close)

			var others sync.WaitGroup
			t.Cleanup(others.Wait)
			if tc.busy {
				for i := range maxReviews {
					others.Go(func() { serve(t, handler, get(services, fmt.Sprint("other-", i))) })
				}
				waitUntil(t, func() bool { return tokens.tokenReviews.Load() >= maxReviews })
			}
			requests := 3
			if tc.closed {
				requests = 1
			}
			for n := range requests {
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					if info.Reused != (n > 0) {
						t.Errorf("request %d: reused connection is %v", n, info.Reused)
					}
				}})
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+tc.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.token != "" {
					req.Header.Set("Authorization", "Bearer "+tc.token)
				}
				response, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.ProtoMajor != 2 || response.StatusCode != tc.code {
					t.Fatalf("got %s by %s, want %d by HTTP/2", response.Status, response.Proto, tc.code)
				}
			}
			if tc.closed {
				waitUntil(t, func() bool { return closed.Load() > 0 })
			}
		})
	}
}

func waitUntil(t *testing.T, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("condition not met: %v", err)
	}
}
