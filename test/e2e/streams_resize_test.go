// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestStreamsResizeATerminal(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "resize", echoLines...)
	grid, err := n.TokenConfig(lab.AdminToken)
	must(t, err)
	upstream, err := cluster.Cloud.Config(cluster.Cloud.AdminKubeconfig)
	must(t, err)
	for server, config := range map[string]*rest.Config{"grid-apiserver": reachable(t, n.Host, grid), "upstream itself": reachable(t, cluster.Cloud.Host, upstream)} {
		target, err := url.Parse(config.Host + "/api/v1/namespaces/default/pods/resize/exec?" + url.Values{
			"command": {"/bin/sh", "-c", "while read -r line; do stty size; done"}, "stdin": {"true"}, "stdout": {"true"}, "tty": {"true"},
		}.Encode())
		must(t, err)
		webSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", target.String())
		must(t, err)
		spdy, err := remotecommand.NewSPDYExecutor(config, "POST", target)
		must(t, err)
		for protocol, executor := range map[string]remotecommand.Executor{"WebSocket": webSocket, "SPDY": spdy} {
			t.Run(server+" "+protocol, func(t *testing.T) {
				ctx := streamContext(t)
				input, keys := io.Pipe()
				defer keys.Close()
				var screen lockedBuffer
				sizes := make(sizeQueue, 1)
				ended := make(chan error, 1)
				go func() {
					ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &screen, Tty: true, TerminalSizeQueue: sizes})
					_ = keys.Close()
				}()
				for _, size := range []remotecommand.TerminalSize{{Width: 80, Height: 24}, {Width: 132, Height: 50}} {
					sizes <- size
					eventually(t, streamTime, fmt.Sprintf("the terminal is %+v", size), func(context.Context) error {
						if strings.Contains(screen.String(), fmt.Sprintf("%d %d\r\n", size.Height, size.Width)) {
							return nil
						}
						_, _ = keys.Write([]byte("\n"))
						return fmt.Errorf("it shows %q", screen.String())
					})
				}
				close(sizes)
				_, _ = keys.Write([]byte{4}) // the end of the input, to a terminal
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// sizeQueue is a remotecommand.TerminalSizeQueue.
type sizeQueue chan remotecommand.TerminalSize

// Next implements remotecommand.TerminalSizeQueue.
func (q sizeQueue) Next() *remotecommand.TerminalSize {
	if size, ok := <-q; ok {
		return &size
	}
	return nil
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is what has been written so far.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// reachable makes a server inside a host reachable over this machine's loopback until the end of the test, for clients
// that connect by themselves. The certificates of all servers in the lab are good for that address.
func reachable(t *testing.T, h *lab.Host, config *rest.Config) *rest.Config {
	t.Helper()
	target, err := url.Parse(config.Host)
	must(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed by the test
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := h.Dial(context.Background(), "tcp", target.Host)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				}()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
	config = rest.CopyConfig(config)
	config.Host, config.Dial = "https://"+listener.Addr().String(), nil
	return config
}
