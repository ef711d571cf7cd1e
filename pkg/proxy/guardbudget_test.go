// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	if limit := newWriteGuard(HandlerConfig{RequestTimeout: defaultRequestTimeout}).timeout; limit > defaultRequestTimeout/2 {
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
	up, down := newFront(t, HandlerConfig{Upstream: upstream.config()}), newFront(t, HandlerConfig{Upstream: insecure(refused(t))})
	tests := []struct {
		name, query, body string
		front             *frontServer
		want              int
	}{
		{"refused here", "", `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`, up, http.StatusNotImplemented},
		{"too large", "", strings.Repeat(" ", maxGuardedBody+1), up, http.StatusRequestEntityTooLarge},
		{"refused upstream", "?read=1", "{}" + strings.Repeat(" ", 1<<20), up, http.StatusUnauthorized},
		{"refused upstream unread", "", "{}" + strings.Repeat(" ", 1<<20), up, http.StatusUnauthorized},
		{"upstream away", "", "{}", down, http.StatusServiceUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			response, body := tt.front.do(t, "PUT", guardedTarget+tt.query, tt.body, "Authorization", clientAuthorization)
			if response.StatusCode != tt.want {
				t.Errorf("answer %d, want %d: %s", response.StatusCode, tt.want, body)
			}
			eventually(t, "all is given back", func() bool { return reserved(tt.front.proxy.guard.bodies.unknown, guardBudget) == 0 })
		})
	}
}

// allocated returns the bytes that f allocates, which is at least what it holds at its worst.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestHostileBodiesCostLittle(t *testing.T) {
	const mib = 1 << 20
	fill := func(start, repeat, end string, size int) []byte {
		return []byte(start + strings.Repeat(repeat, (size-len(start)-len(end))/len(repeat)) + end)
	}
	digits := `"` + viewRevision + `"`
	manyOwners := protobufBody(t, "Service", rawMessage("\x0a\x80\x80\x80\x01"+strings.Repeat("\x6a\x00", mib)))
	tests := []struct {
		name, contentType string
		body              []byte
		most              int
	}{
		{"YAML list", "application/yaml", fill("[a", ",a", "]", maxGuardedBody), 64 * 1024},
		{"YAML list with digits", "application/yaml", fill("[x"+digits, ",a", "]", maxGuardedBody), 64 * 1024},
		{"YAML list with an escape", "application/yaml", fill(`["\x31"`, ",a", "]", maxGuardedBody), 64 * 1024},
		{"YAML list as large as is parsed", "application/yaml", fill("[x"+digits, ",a", "]", maxCostlyBody), 64 * mib},
		{"YAML aliases of a large scalar", "application/yaml", fill("a: &a x"+digits+strings.Repeat("x", maxCostlyBody/2)+"\nb: [*a", ",*a", "]", maxCostlyBody), 64 * mib},
		{"CBOR list", "application/cbor", append([]byte("\x9a\x00\x2f\xff\xfb"), bytes.Repeat([]byte("\x80"), 0x2ffffb)...), 64 * 1024},
		{"CBOR list with digits", "application/cbor", append([]byte("\x9a\x00\x2f\xff\xea\x70"+viewRevision), bytes.Repeat([]byte("\x80"), 0x2fffe9)...), 64 * 1024},
		{"CBOR list as large as is parsed", "application/cbor", append([]byte("\x9a\x00\x03\xff\xea\x70"+viewRevision), bytes.Repeat([]byte("\x80"), 0x3ffe9)...), 64 * mib},
		{"JSON patch", jsonPatchType, fill("[{}", ",{}", "]", maxGuardedBody), 64 * 1024},
		{"JSON patch with digits", jsonPatchType, fill(`[{"a":`+digits+"}", ",{}", "]", maxGuardedBody), mib},
		{"JSON patch with a large value", jsonPatchType, fill(`[{"path":"/metadata","value":[`+digits, ",[]", "]}]", maxGuardedBody), 16 * mib},
		{"JSON, deep", "application/json", fill(`{"a":`+digits+`,"b":`, "[", "", maxGuardedBody), mib},
		{"protobuf", protobufType, manyOwners, 64 * 1024},
		{"protobuf with digits", protobufType, append(manyOwners, viewRevision...), 64 * 1024},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.body) > maxGuardedBody {
				t.Fatalf("%d bytes", len(tt.body))
			}
			got := allocated(func() {
				if found, err := newInspector().carries(t.Context(), tt.contentType, tt.body); found || err != nil {
					t.Errorf("got %t, %v", found, err)
				}
			})
			if got > tt.most {
				t.Errorf("%d bytes allocated, want at most %d", got, tt.most)
			}
		})
	}
}

type rawMessage string

func (m rawMessage) Marshal() ([]byte, error) { return []byte(m), nil }

func TestCostlyBodiesAreParsedOneAtATime(t *testing.T) {
	upstream := newUpstream(t, nil)
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	costly := front.proxy.guard.inspector.costly
	costly <- struct{}{} // one is being parsed
	digits := " " + viewRevision
	tests := []struct {
		name, contentType, body string
		want                    int
	}{
		{"YAML", "application/yaml", "a: [b]\nc:" + digits, http.StatusTooManyRequests},
		{"CBOR", "application/cbor", string(cborBody(t, map[string]any{"a": viewRevision})), http.StatusTooManyRequests},
		{"YAML without digits", "application/yaml", "a: [b]\n", http.StatusOK},
		{"YAML that is JSON", "application/apply-patch+yaml", `{"a":` + digits + `}`, http.StatusOK},
		{"JSON", "application/json", `{"a":` + digits + `}`, http.StatusOK},
		{"protobuf", protobufType, string(protobufBody(t, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: viewRevision}})), http.StatusOK},
	}
	t.Run("busy", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				response, body := front.do(t, "PUT", guardedTarget, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType)
				if response.StatusCode != tt.want || (tt.want == http.StatusTooManyRequests) != (response.Header.Get("Retry-After") != "") {
					t.Errorf("answer %d, Retry-After %q, want %d: %s", response.StatusCode, response.Header.Get("Retry-After"), tt.want, body)
				}
			})
		}
	})
	<-costly
	for _, tt := range tests {
		if response, body := front.do(t, "PUT", guardedTarget, tt.body, "Authorization", clientAuthorization, "Content-Type", tt.contentType); response.StatusCode != http.StatusOK {
			t.Errorf("%s, not busy: answer %d: %s", tt.name, response.StatusCode, body)
		}
	}
}

// What hides a revision from the search for digits is either found all the same, or goes upstream, never refused by mistake.
func TestHiddenViewRevisions(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		want                    bool
	}{
		{"JSON escape", "application/json", `{"metadata":{"resourceVersion":"180000000000000\u0030"}}`, true},
		{"JSON escapes alone", "application/json", `{"metadata":{"resourceVersion":"` + strings.Repeat(`\u0031`, 16) + `"}}`, true},
		{"JSON escape in a patch", jsonPatchType, `[{"op":"test","path":"\u002fmetadata/resourceVersion","value":"18000000\u00300000000"}]`, true},
		{"JSON escape of something else", "application/json", `{"metadata":{"resourceVersion":"12","annotations":{"a":"\u003cb\u003e \u003"}}}`, false},
		{"JSON escape in YAML", "application/apply-patch+yaml", `{"metadata":{"resourceVersion":"180000000000000\u0030"}}`, true},
		{"YAML escape", "application/yaml", `metadata: {resourceVersion: "\x318000000000\u003000000"}`, true},
		{"YAML folded line", "application/yaml", "metadata:\n  resourceVersion: \"18000000\\\n    00000000\"\n", true},
		{"YAML merge", "application/yaml", "x: &m {resourceVersion: '1800000000000000'}\nmetadata: {<<: *m}\n", true},
		{"YAML of another type elsewhere", "application/yaml", "preconditions: 5\nmetadata: {resourceVersion: '1800000000000000'}\n", true},
		{"YAML revision in an annotation", "application/yaml", "metadata: {annotations: {a: '1800000000000000'}, resourceVersion: '5'}\n", false},
		{"YAML underscores", "application/yaml", "metadata: {resourceVersion: 1_800_000_000_000_000}", false},
		{"YAML hexadecimal", "application/yaml", "metadata: {resourceVersion: 0x6651728988000}", false},
		{"YAML binary", "application/yaml", "metadata: {resourceVersion: !!binary MTgwMDAwMDAwMDAwMDAwMA==}", false},
		{"CBOR integer", "application/cbor", string(cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": 1800000000000000}})), false},
		{"CBOR chunks", "application/cbor", "\xa1\x68metadata\xa1\x6fresourceVersion\x7f\x6818000000\x6800000000\xff", false},
		{"leading zeros", "application/json", `{"metadata":{"resourceVersion":"0001800000000000000"}}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := newInspector().carries(t.Context(), tt.contentType, []byte(tt.body)); got != tt.want || err != nil {
				t.Errorf("got %t, %v, want %t", got, err, tt.want)
			}
		})
	}
}
