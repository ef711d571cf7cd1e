// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestStreamsProxySubresources(t *testing.T) {
	n, k := setUpStreams(t)
	pod := runPod(t, k, "web", outputLines...)
	must(t, pod.Input("one\ntwo\n"))
	port := serveWeb(t, n)
	createWebService(t, n, port)
	inPod := "/api/v1/namespaces/default/pods/web:" + strconv.Itoa(int(port)) + "/proxy"
	const inService, inNode = "/api/v1/namespaces/default/services/web:http/proxy", "/api/v1/nodes/node0/proxy"
	const form = "application/x-www-form-urlencoded"
	upstream, grid := bothConfigs(t, n)
	eventually(t, 10*time.Second, "upstream knows the endpoint of the Service", func(ctx context.Context) error {
		code, body, err := lab.Probe(ctx, upstream, inService+"/")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})

	for _, test := range []struct {
		name, method, path, contentType, body string
		want                                  any // what the web server saw, or an answer's body
	}{
		{name: "GET with a query, pod", method: "GET", path: inPod + "/a/b%2Fc?x=1&y=%20&x=2", want: seen{Method: "GET", Path: "/a/b/c", Query: "x=1&y=%20&x=2"}},
		{name: "GET with a query, service", method: "GET", path: inService + "/a/?x=1", want: seen{Method: "GET", Path: "/a/", Query: "x=1"}},
		{name: "POST, pod", method: "POST", path: inPod + "/post", contentType: "text/plain", body: "body", want: seen{Method: "POST", Path: "/post", Body: "body"}},
		{name: "POST, service", method: "POST", path: inService + "/post", contentType: "text/plain", body: strings.Repeat("body", 100_000), want: seen{Method: "POST", Path: "/post", Body: strings.Repeat("body", 100_000)}},
		{name: "PUT, service", method: "PUT", path: inService + "/put?a=b", body: "{}", want: seen{Method: "PUT", Path: "/put", Query: "a=b", Body: "{}"}},
		{name: "GET with a query, node", method: "GET", path: inNode + "/containerLogs/default/web/main?tailLines=1", want: "got two\n"},
		{name: "POST, node", method: "POST", path: inNode + "/run/default/web/main", contentType: form, body: "cmd=echo+a+b", want: "a b\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eventually(t, 5*time.Second, "the answer is as wanted", func(ctx context.Context) error { // the pod writes its log meanwhile
				_, content := ask(t, upstream, test.method, test.path, test.contentType, test.body, nil)
				_, got := ask(t, grid, test.method, test.path, test.contentType, test.body, nil)
				if diff := cmp.Diff(content, got); diff != "" {
					return &different{"upstream's answer", diff}
				}
				if want, ok := test.want.(string); ok {
					return differs("the body", want, got)
				}
				var saw seen
				must(t, json.Unmarshal([]byte(got), &saw))
				saw.Header = nil
				return differs("what the web server saw", test.want, any(saw))
			})
		})
	}

	t.Run("repeated headers", func(t *testing.T) {
		header := http.Header{"X-Repeated": {"a", "b, c", "a"}, "Warning": {`299 - "one"`, `299 - "two"`}}
		for name, path := range map[string]string{"pod": inPod, "service": inService} {
			wantHeader, _ := ask(t, upstream, "GET", path+"/headers", "", "", header)
			gotHeader, body := ask(t, grid, "GET", path+"/headers", "", "", header)
			for _, key := range repeated {
				if diff := cmp.Diff(wantHeader.Values(key), gotHeader.Values(key)); diff != "" || len(gotHeader.Values(key)) != 2 {
					t.Errorf("%s: %s in the answer: %q (-upstream +got)\n%s", name, key, gotHeader.Values(key), diff)
				}
			}
			var saw seen
			must(t, json.Unmarshal([]byte(body), &saw))
			if diff := cmp.Diff(header, saw.Header); diff != "" {
				t.Errorf("%s: headers of the request (-sent +seen)\n%s", name, diff)
			}
		}
	})

	for name, path := range map[string]string{"pod": inPod, "service": inService} {
		t.Run("WebSocket, "+name, func(t *testing.T) {
			for server, config := range map[string]*rest.Config{"upstream": upstream, "grid-apiserver": grid} {
				connection := dialWebSocket(t, config, path+"/ws") // a query is lost in kube-apiserver
				for _, message := range []string{"hello", "", strings.Repeat("x", 300_000)} {
					must(t, connection.WriteMessage(websocket.BinaryMessage, []byte(message)))
					if _, got, err := connection.ReadMessage(); err != nil || string(got) != message {
						t.Fatalf("%s: %d of %d bytes came back: %v", server, len(got), len(message), err)
					}
				}
				must(t, connection.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")))
				if _, _, err := connection.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
					t.Errorf("%s: it does not end well: %v", server, err)
				}
			}
		})
	}
}

// different is an error that shows a difference.
type different struct{ what, diff string }

// Error implements error.
func (d *different) Error() string { return "another " + d.what + " (-want +got)\n" + d.diff }

func differs[T any](what string, want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return &different{what, diff}
	}
	return nil
}

// bothConfigs are connections with an administrator's token, to the upstream and to the node's grid-apiserver.
func bothConfigs(t *testing.T, n *lab.Node) (upstream, grid *rest.Config) {
	t.Helper()
	upstream, err := cluster.Cloud.Config(cluster.Cloud.AdminKubeconfig)
	must(t, err)
	upstream = rest.AnonymousClientConfig(upstream)
	upstream.BearerToken = lab.AdminToken
	grid, err = n.TokenConfig(lab.AdminToken)
	must(t, err)
	return upstream, grid
}

// ask sends a request and returns the headers and the body of its answer, which must be a 200.
func ask(t *testing.T, config *rest.Config, method, path, contentType, body string, header http.Header) (http.Header, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, strings.NewReader(body))
	must(t, err)
	for key, values := range header {
		request.Header[key] = values
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s%s: %s: %s", method, config.Host, path, response.Status, content)
	}
	return response.Header, string(content)
}

func dialWebSocket(t *testing.T, config *rest.Config, path string) *websocket.Conn {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	must(t, err)
	dialer := websocket.Dialer{NetDialContext: config.Dial, TLSClientConfig: tlsConfig}
	connection, response, err := dialer.DialContext(t.Context(), "wss"+strings.TrimPrefix(config.Host, "https")+path,
		http.Header{"Authorization": {"Bearer " + config.BearerToken}})
	if err != nil {
		t.Fatalf("%s%s: %v: %v", config.Host, path, err, response)
	}
	t.Cleanup(func() { _ = connection.Close() })
	must(t, connection.SetReadDeadline(time.Now().Add(streamTime)))
	return connection
}
