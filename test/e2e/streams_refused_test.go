// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// kube-apiserver can still be told to translate no WebSocket, as those before 1.29 could not: the request then goes on
// to the kubelet, which does not know the client's protocol.
func TestStreamsWhereUpstreamRefusesWebSocket(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "refused", echoLines...)
	second, err := cluster.StartSecondAPIServer(t.Context(), "--feature-gates=TranslateStreamCloseWebsocketRequests=false,PortForwardWebsockets=false")
	if second != nil {
		t.Cleanup(func() { second.Stop(10 * time.Second) })
	}
	must(t, err)
	dir := t.TempDir()
	grid, err := n.RunGrid(t.Context(), "grid-apiserver-refused", "--node-name="+n.Name, "--kubeconfig="+second.GridKubeconfig, "--data-dir="+dir, "--secure-port=51016", "-v=2")
	must(t, err)
	t.Cleanup(func() { grid.Stop(10 * time.Second) })
	kubeconfig := filepath.Join(dir, "kube-proxy.kubeconfig")
	eventually(t, streamTime, "its grid-apiserver is ready", func(ctx context.Context) error {
		config, err := n.Config(kubeconfig)
		if err != nil {
			return err
		}
		code, body, err := lab.Probe(ctx, rest.AnonymousClientConfig(config), "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	ctx := streamContext(t)
	kubectl := func(args ...string) *exec.Cmd {
		own := []string{"--kubeconfig=" + kubeconfig, "--token=" + lab.AdminToken, "--cache-dir=" + cluster.Dir + "/kubectl-cache/refused", "-v=4"}
		return n.Command(ctx, cluster.Programs.Path("kubectl"), append(own, args...)...)
	}

	stdout, stderr, code := run(t, kubectl("exec", "refused", "--", "/bin/sh", "-c", "echo out; exit 3"), nil)
	if stdout != "out\n" || code != 3 || !strings.Contains(stderr, "RemoteCommand fallback") {
		t.Errorf("exec: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	sent := randomBytes(1 << 20)
	stdout, stderr, code = run(t, kubectl("exec", "-i", "refused", "--", "cat"), bytes.NewReader(sent))
	if stdout != string(sent) || code != 0 || !strings.Contains(stderr, "RemoteCommand fallback") {
		t.Errorf("exec: exit code %d, %d of %d bytes came back, stderr %q", code, len(stdout), len(sent), stderr)
	}

	forward := kubectl("port-forward", "--address=127.0.0.1", "pod/refused", ":"+serveTCP(t, n, func(c net.Conn) { _, _ = io.Copy(c, c) }))
	var log lockedBuffer
	forward.Stderr = &log
	must(t, exchange(ctx, n.Host, forwardedAddress(t, startLines(t, forward)), sent, sent))
	if !strings.Contains(log.String(), "fallback to secondary dialer") {
		t.Errorf("port-forward: stderr %q", log.String())
	}
}
