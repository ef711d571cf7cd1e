// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t *testing.T, handler http.HandlerFunc) *http.Client {
	t.Helper()
	transport := loopback.NewTransport()
	transport.SetHandler(handler)
	t.Cleanup(transport.Close)
	return &http.Client{Transport: transport}
}

func do(ctx context.Context, t *testing.T, client *http.Client, content string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://host/path?q=1", strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(request)
}

func TestRequestAndResponse(t *testing.T) {
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Test", r.Method+" "+r.RequestURI+" "+r.Host)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "too late")
		_, _ = w.Write([]byte("got " + string(content)))
	})
	response, err := do(t.Context(), t, client, "content")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || string(content) != "got content" || response.StatusCode != http.StatusTeapot {
		t.Errorf("%s %q %v", response.Status, content, err)
	}
	if got := response.Header.Get("X-Test"); got != "POST /path?q=1 host" || response.Header.Get("X-Late") != "" {
		t.Errorf("headers %v", response.Header)
	}
}

func TestServerThatStopsIsNotAskedAgain(t *testing.T) {
	for status, want := range map[int]string{http.StatusServiceUnavailable: "", http.StatusTooManyRequests: "1"} {
		client := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
		})
		response, err := do(t.Context(), t, client, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Retry-After"); response.StatusCode != status || got != want {
			t.Errorf("status %d, Retry-After %q; want %d and %q", response.StatusCode, got, status, want)
		}
	}
}

func TestHandlerThatWritesNothing(t *testing.T) {
	client := newClient(t, func(http.ResponseWriter, *http.Request) {})
	for range 100 { // the handler ends at about the time at which its response begins
		response, err := do(t.Context(), t, client, "")
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(response.Body); err != nil || len(content) > 0 || response.StatusCode != http.StatusOK {
			t.Fatalf("%s %q %v", response.Status, content, err)
		}
		_ = response.Body.Close()
	}
}

func TestStream(t *testing.T) {
	ended := make(chan struct{})
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.(http.Flusher).Flush()
		for range 3 {
			_, _ = w.Write([]byte("line\n"))
		}
		//nolint:staticcheck // the filters of k8s.io/apiserver ask for it
		<-w.(http.CloseNotifier).CloseNotify()
		<-r.Context().Done()
	})
	response, err := do(t.Context(), t, client, "")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	for range 3 {
		if !lines.Scan() || lines.Text() != "line" {
			t.Fatalf("%q %v", lines.Text(), lines.Err())
		}
	}
	_ = response.Body.Close()
	<-ended
}

func TestCanceledRequest(t *testing.T) {
	called := make(chan struct{})
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		close(called)
		<-r.Context().Done()
		if _, err := w.Write([]byte("too late")); err == nil {
			t.Error("somebody reads what comes too late")
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	response, err := do(ctx, t, client, "")
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCanceledStream(t *testing.T) {
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	response, err := do(ctx, t, client, "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cancel()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRequestWithoutHandler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	response, err := do(ctx, t, &http.Client{Transport: loopback.NewTransport()}, "")
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPanickingHandler(t *testing.T) {
	for name, write := range map[string]bool{"before the response": false, "in the response": true} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if write {
					_, _ = w.Write([]byte("begin"))
				}
				panic(http.ErrAbortHandler)
			})
			response, err := do(t.Context(), t, client, "")
			if write {
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(response.Body)
				_ = response.Body.Close()
			}
			if err == nil {
				t.Error("the response is complete")
			}
		})
	}
}

func TestClosedTransportRefusesRequests(t *testing.T) {
	transport := loopback.NewTransport()
	transport.SetHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
	client := &http.Client{Transport: transport}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := do(ended, t, client, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a request whose context has ended: %v", err)
	}
	transport.Close()
	transport.Close()
	if _, err := do(t.Context(), t, client, ""); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a request after the end: %v", err)
	}
}
