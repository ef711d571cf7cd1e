// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestBadInputEndsWithOneErrorThatNamesTheFlag(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	dir := t.TempDir()
	aFile := filepath.Join(dir, "file")
	must(t, os.WriteFile(aFile, []byte("this is no kubeconfig: {"), 0o600))
	for _, test := range []struct {
		name string
		args []string // after the good ones of the node: the last one wins
		want []string
	}{
		{"unknown flag", []string{"--no-such-flag"}, []string{"--no-such-flag"}},
		{"port out of range", []string{"--secure-port=70000"}, []string{"--secure-port", "70000"}},
		{"port not a number", []string{"--secure-port=https"}, []string{"--secure-port", "https"}},
		{"bad bind address", []string{"--bind-address=nowhere"}, []string{"--bind-address", "nowhere"}},
		{"bad local endpoint", []string{"--local-endpoint=10.0.0.1"}, []string{"--local-endpoint", "10.0.0.1"}},
		{"bad node name", []string{"--node-name=No_Node"}, []string{"--node-name", "No_Node"}},
		{"kubeconfig missing", []string{"--kubeconfig=" + dir + "/missing"}, []string{"--kubeconfig", dir + "/missing", "no such file"}},
		{"kubeconfig malformed", []string{"--kubeconfig=" + aFile}, []string{"--kubeconfig", aFile}},
		{"kubeconfig is a folder", []string{"--kubeconfig=" + dir}, []string{"--kubeconfig", dir, "is a directory"}},
		{"address in use", []string{"--secure-port=51006"}, []string{"--secure-port", "51006", "address already in use"}},
		{"data directory is a file", []string{"--data-dir=" + aFile}, []string{"--data-dir", aFile, "not a directory"}},
		{"data directory cannot be made", []string{"--data-dir=/proc/grid"}, []string{"--data-dir", "/proc/grid"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append(n.GridArgs(), "--data-dir="+filepath.Join(t.TempDir(), "data"), "--secure-port=52007")
			code, out := runGrid(t, n, append(args, test.args...))
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("does not say %q", want)
				}
			}
			last := test.want[len(test.want)-1]
			var lines int
			for line := range strings.Lines(out) {
				if strings.Contains(line, last) {
					lines++
				}
			}
			if lines != 1 {
				t.Errorf("says %q in %d lines, want one", last, lines)
			}
			if strings.Contains(out, "goroutine ") {
				t.Error("prints a stack trace")
			}
			if t.Failed() {
				t.Logf("output:\n%s", out)
			}
		})
	}
}

func TestReadyzNamesTheNodeThatDoesNotExistUpstream(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	data := t.TempDir()
	p, err := n.RunGrid(t.Context(), "grid-apiserver-ghost", append(n.GridArgs(), "--node-name=ghost", "--secure-port=52006", "--data-dir="+data)...)
	must(t, err)
	t.Cleanup(p.Kill)
	var config *rest.Config
	eventually(t, 10*time.Second, "/readyz names the node", func(ctx context.Context) error {
		if config, err = n.Config(filepath.Join(data, "kube-proxy.kubeconfig")); err != nil {
			return err
		}
		code, body, err := lab.Probe(ctx, rest.AnonymousClientConfig(config), "/readyz")
		if err == nil && code == http.StatusOK {
			t.Fatal("ready without its node")
		}
		if err == nil && !strings.Contains(body, "ghost") {
			err = fmt.Errorf("%d: %s", code, body)
		}
		return err
	})
	code, body, err := lab.Probe(t.Context(), config, "/api/v1/services")
	if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, `"kind":"Status"`) {
		t.Errorf("services answer %d, %v, want 503 with a Status: %s", code, err, body)
	}
	if code, body, err := lab.Probe(t.Context(), rest.AnonymousClientConfig(config), "/livez"); err != nil || code != http.StatusOK {
		t.Errorf("/livez answers %d, %v: %s", code, err, body)
	}
}

// runGrid runs grid-apiserver on a node, where it is expected to end by itself.
func runGrid(t *testing.T, n *lab.Node, args []string) (code int, out string) {
	t.Helper()
	path, err := cluster.GridProgram(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	content, err := n.Command(ctx, path, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Errorf("still running after 15 seconds")
		return -1, string(content)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	for line := range strings.Lines(string(content)) {
		if !strings.Contains(line, "FLAG:") { // the log of all flags at -v=1 and above
			out += line
		}
	}
	return code, out
}
