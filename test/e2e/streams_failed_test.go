// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// The headers of the clients' upgrade requests.
const (
	webSocketUpgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
	spdyUpgrade      = "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n"
)

func TestStreamsFailedUpgrades(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "upgrade", echoLines...)
	must(t, k.CreatePod(t.Context(), "stranger")) // the kubelet does not know it
	t.Cleanup(func() { _ = k.DeletePod(context.Background(), "stranger") })
	away, err := cluster.Nodes[1].StartKubelet(t.Context())
	must(t, err)
	runPod(t, away, "away", echoLines...)
	away.Stop()
	upstream, err := cluster.Cloud.Config(cluster.Cloud.AdminKubeconfig)
	must(t, err)
	grid, err := n.TokenConfig("")
	must(t, err)
	for _, test := range []struct {
		name, method, upgrade, path, token string
		want                               int
	}{
		{"no such pod", "GET", webSocketUpgrade, "/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true", lab.AdminToken, http.StatusNotFound},
		{"no such pod, SPDY", "POST", spdyUpgrade, "/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true", lab.AdminToken, http.StatusNotFound},
		{"no such container", "GET", webSocketUpgrade, "/api/v1/namespaces/default/pods/upgrade/exec?container=none&command=ls&stdout=true", lab.AdminToken, http.StatusBadRequest},
		{"no such container, SPDY", "POST", spdyUpgrade, "/api/v1/namespaces/default/pods/upgrade/attach?container=none&stdout=true", lab.AdminToken, http.StatusBadRequest},
		{"the kubelet refuses, SPDY", "POST", spdyUpgrade, "/api/v1/namespaces/default/pods/stranger/exec?command=ls&stdout=true", lab.AdminToken, http.StatusNotFound},
		{"the kubelet is away, SPDY", "POST", spdyUpgrade, "/api/v1/namespaces/default/pods/away/portforward", lab.AdminToken, http.StatusInternalServerError},
		{"no right", "GET", webSocketUpgrade, "/api/v1/namespaces/default/pods/upgrade/exec?command=ls&stdout=true", lab.NobodyToken, http.StatusForbidden},
		{"no right, SPDY", "POST", spdyUpgrade, "/api/v1/namespaces/default/pods/upgrade/portforward", lab.NobodyToken, http.StatusForbidden},
		{"unknown token", "GET", webSocketUpgrade, "/api/v1/namespaces/default/pods/upgrade/exec?command=ls&stdout=true", "no-such-token", http.StatusUnauthorized},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\n%s\r\n", test.method, test.path, test.token, test.upgrade)
			wantCode, wantType, wantBody, _ := askRaw(t, cluster.Cloud.Host, rest.AnonymousClientConfig(upstream), request)
			code, contentType, body, closed := askRaw(t, n.Host, grid, request)
			if code != test.want || code != wantCode || contentType != wantType || body != wantBody {
				t.Errorf("%d %s %s\nupstream answers %d %s %s", code, contentType, body, wantCode, wantType, wantBody)
			}
			if !closed {
				t.Error("the connection is not closed")
			}
		})
	}
}

// askRaw sends a request over a connection of its own. After the answer it sends another one: closed means that there
// was no answer to it.
func askRaw(t *testing.T, h *lab.Host, config *rest.Config, request string) (code int, contentType, body string, closed bool) {
	t.Helper()
	target, err := url.Parse(config.Host)
	must(t, err)
	tlsConfig, err := rest.TLSConfigFor(config)
	must(t, err)
	tlsConfig.ServerName = target.Hostname()
	plain, err := h.Dial(t.Context(), "tcp", target.Host)
	must(t, err)
	connection := tls.Client(plain, tlsConfig)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(connection, request)
	must(t, err)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	must(t, err)
	content, err := io.ReadAll(response.Body)
	must(t, err)
	_ = response.Body.Close()
	// It may fail at once, or be lost.
	_, _ = io.WriteString(connection, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
	_, err = reader.ReadByte()
	closed = err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	return response.StatusCode, response.Header.Get("Content-Type"), string(content), closed
}
