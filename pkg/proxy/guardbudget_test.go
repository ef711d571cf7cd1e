// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const guardedTarget = "/api/v1/namespaces/default/services/web"

// reserved returns what a budget of the given size has given out.
func reserved(budget *byteBudget, size int) int {
	budget.mu.Lock()
	defer budget.mu.Unlock()
	return size - budget.free
}

// sendPart begins a write that announces announced bytes, and sends sent of them.
func (f *frontServer) sendPart(t testing.TB, authorization string, announced, sent int) *rawConnection {
	t.Helper()
	connection := f.dial(t)
	connection.send(t, "PUT "+guardedTarget+" HTTP/1.1", "Host: x", "Authorization: "+authorization,
		"Content-Type: application/json", "Content-Length: "+strconv.Itoa(announced))
	// It may be refused on the way.
	_, _ = connection.Write(bytes.Repeat([]byte(" "), sent))
	return connection
}

func TestGuardedBodiesHoldWhatHasArrived(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	unknown := front.proxy.guard.bodies.unknown
	const writers, sent = 50, 10 * 1024
	var connections []*rawConnection
	for range writers {
		connections = append(connections, front.sendPart(t, "Bearer made-up", maxGuardedBody, sent))
	}
	eventually(t, "all have sent", func() bool { return reserved(unknown, guardBudget) >= writers*sent })
	if got, most := reserved(unknown, guardBudget), writers*2*sent; got > most {
		t.Errorf("%d bytes reserved, want at most %d", got, most)
	}
	if response, body := front.do(t, "PUT", guardedTarget, "{}", "Authorization", clientAuthorization); response.StatusCode != http.StatusOK {
		t.Errorf("another client: answer %d: %s", response.StatusCode, body)
	}
	for _, connection := range connections {
		_ = connection.Close()
	}
	eventually(t, "all is given back", func() bool { return reserved(unknown, guardBudget) == 0 })
}

func TestGuardedBodiesHaveABudget(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	bodies := front.proxy.guard.bodies
	front.do(t, "GET", "/api/v1/pods", "", "Authorization", clientAuthorization) // makes the token known

	var refused *http.Response
	for range guardBudget/maxGuardedBody + 2 {
		before := reserved(bodies.unknown, guardBudget)
		connection := front.sendPart(t, "Bearer made-up", maxGuardedBody, maxGuardedBody-1)
		done := make(chan *http.Response, 1)
		go func() {
			if response, err := http.ReadResponse(connection.r, nil); err == nil {
				done <- response
			}
			close(done)
		}()
		full := false
		eventually(t, "the body is in memory or refused", func() bool {
			select {
			case refused = <-done:
				full = true
				return true
			default:
				return reserved(bodies.unknown, guardBudget)%(maxGuardedBody+1) == 0 && reserved(bodies.unknown, guardBudget) > before
			}
		})
		if full {
			break
		}
	}
	if refused == nil {
		t.Fatal("nothing was refused")
	}
	body, _ := io.ReadAll(refused.Body)
	if status := decodeStatus(t, string(body)); refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") != "1" || status.Reason != metav1.StatusReasonTooManyRequests {
		t.Errorf("answer %d, Retry-After %q: %s", refused.StatusCode, refused.Header.Get("Retry-After"), body)
	}
	large := "{}" + strings.Repeat(" ", maxGuardedBody-2)
	if response, body := front.do(t, "PUT", guardedTarget, large, "Authorization", clientAuthorization); response.StatusCode != http.StatusOK {
		t.Errorf("a token that upstream knows: answer %d: %s", response.StatusCode, body)
	}
	front.CloseClientConnections()
	eventually(t, "all is given back", func() bool {
		return reserved(bodies.unknown, guardBudget) == 0 && reserved(bodies.known, guardBudget) == 0
	})
}

func TestGuardedBodyMustArriveInTime(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), RequestTimeout: 200 * time.Millisecond})
	if limit := newWriteGuard(HandlerConfig{Upstream: upstream.config(), RequestTimeout: defaultRequestTimeout}).timeout; limit > defaultRequestTimeout/2 {
		t.Errorf("a body may take %v", limit)
	}
	for _, http2 := range []bool{true, false} {
		reader, writer := io.Pipe()
		r := front.request(t, "PUT", guardedTarget, "", "Authorization", clientAuthorization)
		r.Body, r.ContentLength = reader, maxGuardedBody
		go func() { _, _ = io.WriteString(writer, "{") }()
		response, err := front.client(t, http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("HTTP/2 %t: answer %d", http2, response.StatusCode)
		}
		_ = response.Body.Close()
		_ = writer.Close()
	}
	if seen := upstream.seen(); len(seen) != 0 {
		t.Errorf("upstream saw %+v", seen)
	}
	eventually(t, "all is given back", func() bool { return reserved(front.proxy.guard.bodies.unknown, guardBudget) == 0 })
}

func TestGuardedBodiesAreGivenBackWhateverTheAnswer(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("read") != "" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	up, down := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}}), newFront(t, HandlerConfig{Upstream: insecure(refused(t))})
	tests := []struct {
		name, query, body string
		front             *frontServer
		want              int
	}{
		{"refused here", "?yaml=1", "a: &a '" + viewRevision + "'\nmetadata: {resourceVersion: *a}", up, http.StatusUnsupportedMediaType},
		{"too large", "", strings.Repeat(" ", maxGuardedBody+1), up, http.StatusRequestEntityTooLarge},
		{"refused upstream", "?read=1", "{}" + strings.Repeat(" ", 1<<20), up, http.StatusUnauthorized},
		{"refused upstream unread", "", "{}" + strings.Repeat(" ", 1<<20), up, http.StatusUnauthorized},
		{"upstream away", "", "{}", down, http.StatusServiceUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			response, body := tt.front.do(t, "PUT", guardedTarget+tt.query, tt.body, "Authorization", clientAuthorization, "Content-Type", "application/yaml")
			if response.StatusCode != tt.want {
				t.Errorf("answer %d, want %d: %s", response.StatusCode, tt.want, body)
			}
			eventually(t, "all is given back", func() bool { return reserved(tt.front.proxy.guard.bodies.unknown, guardBudget) == 0 })
		})
	}
}
