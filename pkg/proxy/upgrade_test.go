// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
)

const bearerProtocol = "base64url.bearer.authorization.k8s.io."

func TestWebSocketEcho(t *testing.T) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		for {
			kind, message, err := connection.ReadMessage()
			if err != nil {
				return
			}
			if err := connection.WriteMessage(kind, message); err != nil {
				return
			}
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	token := bearerProtocol + base64.RawURLEncoding.EncodeToString([]byte("client-token"))
	for name, header := range map[string]http.Header{
		"Authorization header": {"Authorization": {clientAuthorization}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"}},
		"subprotocol":          {"Sec-Websocket-Protocol": {token + ", v5.channel.k8s.io"}},
	} {
		dialer := websocket.Dialer{TLSClientConfig: front.client(t, false).Transport.(*http.Transport).TLSClientConfig}
		const target = "/api/v1/namespaces/default/pods/web/exec?command=a&command=b%20c"
		connection, response, err := dialer.DialContext(t.Context(), strings.Replace(front.URL, "https", "wss", 1)+target, header)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := response.Header.Get("Sec-Websocket-Protocol"); got != "v5.channel.k8s.io" {
			t.Errorf("%s: subprotocol %q", name, got)
		}
		big := strings.Repeat("x", 100_000)
		for _, message := range []string{"hello", big} {
			if err := connection.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := connection.ReadMessage(); err != nil || string(got) != message {
				t.Fatalf("%s: %d bytes came back, %v", name, len(got), err)
			}
		}
		_ = connection.Close()
		got := upstream.last(t)
		if got.RequestURI != target || got.Proto != "HTTP/1.1" {
			t.Errorf("%s: upstream saw %s %s", name, got.Proto, got.RequestURI)
		}
		if strings.Contains(fmt.Sprint(got.Header), serverToken) {
			t.Errorf("%s: the server's credential went along: %v", name, got.Header)
		}
	}
}

// switchProtocols takes the connection over and answers with a 101 to the given protocol.
func switchProtocols(w http.ResponseWriter, protocol string) (net.Conn, *bufio.ReadWriter) {
	connection, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n", protocol)
	return connection, buffered
}

func TestSPDYEcho(t *testing.T) {
	var open atomic.Int64
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		connection, buffered := switchProtocols(w, r.Header.Get("Upgrade"))
		defer connection.Close()
		_, _ = io.WriteString(connection, "server speaks first\n")
		for {
			line, err := buffered.ReadString('\n')
			if err != nil || line == "bye\n" {
				return
			}
			_, _ = io.WriteString(connection, line)
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for _, end := range []string{"upstream", "client"} {
		connection := front.dial(t)
		connection.send(t, "POST /api/v1/namespaces/default/pods/web/portforward HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization,
			"Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io", "X-Stream-Protocol-Version: v3.channel.k8s.io")
		response := connection.response(t)
		if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "SPDY/3.1" ||
			response.Header.Get("X-Stream-Protocol-Version") != "v4.channel.k8s.io" {
			t.Fatalf("answer %d %v", response.StatusCode, response.Header)
		}
		if got := upstream.last(t).Header["X-Stream-Protocol-Version"]; len(got) != 2 {
			t.Errorf("upstream saw %q", got)
		}
		if line, _ := connection.r.ReadString('\n'); line != "server speaks first\n" {
			t.Errorf("got %q", line)
		}
		for range 3 {
			_, _ = io.WriteString(connection, "\x80\x03\x00\x01 frame\n")
			if line, _ := connection.r.ReadString('\n'); line != "\x80\x03\x00\x01 frame\n" {
				t.Errorf("echo %q", line)
			}
		}
		if end == "client" {
			_ = connection.Close()
		} else {
			_, _ = io.WriteString(connection, "bye\n")
			if _, err := connection.r.ReadByte(); err == nil {
				t.Error("the connection goes on after upstream closed it")
			}
		}
		eventually(t, "upstream's side ends", func() bool { return open.Load() == 0 })
	}
}

func TestFailedUpgradeClosesTheConnection(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("answer") {
		case "forbidden":
			http.Error(w, "no exec for you", http.StatusForbidden)
		case "ok":
			_, _ = io.WriteString(w, "no upgrade here")
		case "other":
			connection, _ := switchProtocols(w, "smuggle")
			_, _ = io.Copy(io.Discard, connection) // until the proxy gives it up
			_ = connection.Close()
		}
	})
	front := newFront(t, HandlerConfig{Upstream: upstream.config()})
	for answer, want := range map[string]int{"forbidden": http.StatusForbidden, "ok": http.StatusOK, "other": http.StatusBadGateway} {
		connection := front.dial(t)
		connection.send(t, "POST /api/v1/namespaces/default/pods/web/exec?answer="+answer+" HTTP/1.1", "Host: x",
			"Authorization: "+clientAuthorization, "Connection: Upgrade", "Upgrade: SPDY/3.1")
		response := connection.response(t)
		if response.StatusCode != want {
			t.Errorf("%s: answer %d, want %d", answer, response.StatusCode, want)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if answer == "other" {
			continue // the answer is our own; nothing of upstream's connection is reachable
		}
		before := len(upstream.seen())
		_, _ = fmt.Fprintf(connection, "GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer y\r\n\r\n")
		if _, err := connection.r.ReadByte(); err == nil {
			t.Errorf("%s: the connection is still usable", answer)
		}
		if seen := upstream.seen()[before:]; len(seen) != 0 {
			t.Errorf("%s: upstream saw %+v", answer, seen)
		}
	}
}

// An upgrade that we refuse ourselves leaves a client behind that may have sent more already, in the other protocol.
func TestUpgradeThatIsAnsweredHereClosesTheConnection(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		connection, _ := switchProtocols(w, "smuggle")
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	})
	up, down := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}}), newFront(t, HandlerConfig{Upstream: insecure(refused(t))})
	const exec = "POST /api/v1/namespaces/default/pods/web/exec HTTP/1.1"
	token := "Authorization: " + clientAuthorization
	tests := []struct {
		name  string
		front *frontServer
		want  int
		lines []string
	}{
		{"no identity", up, http.StatusUnauthorized, []string{exec}},
		{"local identity", up, http.StatusForbidden, []string{exec, asLocalIdentity + ": 1"}},
		{"upstream away", down, http.StatusServiceUnavailable, []string{exec, token}},
		{"other protocol", up, http.StatusBadGateway, []string{exec, token}},
		{"no path", up, http.StatusBadRequest, []string{"GET * HTTP/1.1", token}},
		{"expired watch", up, http.StatusGone, []string{"GET /api/v1/pods?watch=true&resourceVersion=" + viewRevision + " HTTP/1.1", token}},
		{"refused write", up, http.StatusUnprocessableEntity, []string{"PUT /api/v1/namespaces/shop/endpoints/filtered HTTP/1.1", token, "Content-Length: 1"}},
	}
	for _, tt := range tests {
		for _, protocol := range []string{"SPDY/3.1", "websocket"} {
			t.Run(tt.name+" "+protocol, func(t *testing.T) {
				connection := tt.front.dial(t)
				connection.send(t, append(tt.lines, "Host: x", "Connection: Upgrade", "Upgrade: "+protocol)...)
				response := connection.response(t)
				_, _ = io.Copy(io.Discard, response.Body)
				if response.StatusCode != tt.want || !response.Close {
					t.Errorf("answer %d, closes %t, want %d", response.StatusCode, response.Close, tt.want)
				}
				_, _ = fmt.Fprintf(connection, "xGET /version HTTP/1.1\r\nHost: x\r\n\r\n")
				if _, err := connection.r.ReadByte(); err == nil {
					t.Error("the connection is still usable")
				}
			})
		}
	}
}
