// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/kubelet"
	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// streamTime bounds what a stream may take in all, on a machine that is busy with other things.
const streamTime = 30 * time.Second

// echoLines is a pod's process that answers each line, and ends when told so.
var echoLines = []string{"/bin/sh", "-c", `while read -r line; do [ "$line" = quit ] && exit; echo "got $line"; echo "err $line" >&2; done`}

// outputLines is the same without standard error, whose place between the lines is by chance.
var outputLines = []string{"/bin/sh", "-c", `while read -r line; do [ "$line" = quit ] && exit; echo "got $line"; done`}

// setUpStreams makes node 0 serve the kubelet's API beside its grid-apiserver.
func setUpStreams(t *testing.T) (*lab.Node, *lab.Kubelet) {
	t.Helper()
	must(t, cluster.SetUnits(t.Context(), unit1, unit2, unit2))
	n := cluster.Nodes[0]
	_, err := cluster.GridProgram(t.Context()) // before the flags, which name a file that it makes
	must(t, err)
	if n.Grid == nil || !n.Grid.Running() {
		must(t, n.StartGrid(t.Context()))
	}
	k, err := n.StartKubelet(t.Context())
	must(t, err)
	t.Cleanup(k.Stop)
	return n, k
}

// runPod runs a pod until the end of the test.
func runPod(t *testing.T, k *lab.Kubelet, name string, command ...string) *kubelet.Pod {
	t.Helper()
	t.Cleanup(func() {
		if err := k.DeletePod(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	pod, err := k.RunPod(t.Context(), name, command...)
	must(t, err)
	return pod
}

// streamWay is one way to run kubectl.
type streamWay struct {
	name      string
	webSocket bool // upstream sees WebSocket
	host      *lab.Host
	command   func(ctx context.Context, args ...string) *exec.Cmd
}

// streamWays are kubectl through the node's grid-apiserver, with each protocol and with an old version, and for
// reference kubectl at the upstream itself.
func streamWays(t *testing.T, n *lab.Node) []streamWay {
	t.Helper()
	version, err := n.Run(t.Context(), lab.DistributionKubectl, "version", "--client", "-o", "json")
	must(t, err)
	_, version, _ = strings.Cut(version, `"gitVersion": "`)
	version, _, _ = strings.Cut(version, `"`)
	through := func(ctx context.Context, args ...string) *exec.Cmd {
		return n.KubectlCommand(ctx, append([]string{"--token=" + lab.AdminToken}, args...)...)
	}
	return []streamWay{
		{"WebSocket", true, n.Host, through},
		{"SPDY", false, n.Host, func(ctx context.Context, args ...string) *exec.Cmd { return spdyOnly(through(ctx, args...)) }},
		{"SPDY with kubectl " + version, false, n.Host, func(ctx context.Context, args ...string) *exec.Cmd {
			own := []string{"--kubeconfig=" + n.LocalKubeconfig(), "--token=" + lab.AdminToken, "--cache-dir=" + cluster.Dir + "/kubectl-cache/distribution"}
			return spdyOnly(n.Command(ctx, lab.DistributionKubectl, append(own, args...)...))
		}},
		{"upstream itself", true, cluster.Cloud.Host, cluster.KubectlCommand},
	}
}

// spdyOnly makes kubectl not try WebSocket first; old ones do not know these switches, nor WebSocket.
func spdyOnly(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false")
	return cmd
}

// eachWay runs a test for each way, and checks that upstream sees the protocol that is meant, if the test streams.
func eachWay(t *testing.T, n *lab.Node, streams bool, test func(t *testing.T, way streamWay)) {
	t.Helper()
	upstream, err := cluster.Cloud.Config(cluster.Cloud.AdminKubeconfig)
	must(t, err)
	for _, way := range streamWays(t, n) {
		t.Run(way.name, func(t *testing.T) {
			before, err := webSocketStreams(t.Context(), upstream)
			must(t, err)
			test(t, way)
			if !streams {
				return
			}
			eventually(t, 2*time.Second, "upstream counts the streams", func(ctx context.Context) error {
				after, err := webSocketStreams(ctx, upstream)
				if err == nil && (after > before) != way.webSocket {
					err = fmt.Errorf("upstream saw %d WebSocket streams before and %d now", before, after)
				}
				return err
			})
		})
	}
}

// webSocketStreams is how many streams kube-apiserver has translated from WebSocket so far.
func webSocketStreams(ctx context.Context, upstream *rest.Config) (int, error) {
	code, body, err := lab.Probe(ctx, upstream, "/metrics")
	if err != nil || code != http.StatusOK {
		return 0, fmt.Errorf("metrics of upstream: %d %w", code, err)
	}
	sum := 0
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "apiserver_stream_translator_requests_total{") || strings.HasPrefix(line, "apiserver_stream_tunnel_requests_total{") {
			fields := strings.Fields(line)
			count, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				return 0, err
			}
			sum += count
		}
	}
	return sum, nil
}

// run runs a command to its end. Only what keeps it from running or ending is an error, no exit code.
func run(t *testing.T, cmd *exec.Cmd, stdin io.Reader) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// streamContext ends with the test, and early enough for the test to say which step hangs.
func streamContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), streamTime)
	t.Cleanup(cancel)
	return ctx
}
