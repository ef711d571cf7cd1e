// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// seen is what a web server says about a request.
type seen struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// repeated are headers that a request or an answer may have more than once.
var repeated = []string{"Set-Cookie", "Warning", "X-Repeated"}

// serveWeb serves HTTP on the address of a node until the end of the test and returns the port: it tells what it saw, and
// echoes what comes over a WebSocket.
func serveWeb(t *testing.T, n *lab.Node) (port int32) {
	t.Helper()
	listener, err := n.Listen(t.Context(), "tcp4", n.Address.String()+":0")
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		for {
			kind, message, err := connection.ReadMessage()
			if err != nil || connection.WriteMessage(kind, message) != nil {
				return
			}
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		saw := seen{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: string(body), Header: http.Header{}}
		for _, key := range repeated {
			if values := r.Header.Values(key); len(values) > 0 {
				saw.Header[key] = values
			}
			w.Header()[key] = []string{"299 - \"first\"", "299 - \"second\""}
		}
		_ = json.NewEncoder(w).Encode(saw)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: streamTime}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return int32(listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a TCP port
}

// createWebService makes the Service "web" for the pod "web" with the port of serveWeb, until the end of the test.
func createWebService(t *testing.T, n *lab.Node, port int32) {
	t.Helper()
	t.Cleanup(func() {
		if err := cluster.DeleteService(context.Background(), "web"); err != nil {
			t.Error(err)
		}
	})
	endpoint := lab.Endpoint{Address: n.Address.String(), Node: n.Name}
	slice, endpoints := lab.Slice("web", endpoint), lab.Endpoints("web", endpoint)
	slice.Ports[0].Port, endpoints.Subsets[0].Ports = &port, []corev1.EndpointPort{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP}}
	// kube-apiserver proxies to pods only.
	slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: "web"}
	client := cluster.Cloud.Kubernetes
	_, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), lab.Service("web", nil), metav1.CreateOptions{})
	must(t, err)
	_, err = client.CoreV1().Endpoints(metav1.NamespaceDefault).Create(t.Context(), endpoints, metav1.CreateOptions{})
	must(t, err)
	_, err = client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(t.Context(), slice, metav1.CreateOptions{})
	must(t, err)
}
