// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"net"

	"github.com/google/go-cmp/cmp"
	logsapi "k8s.io/component-base/logs/api/v1"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	// The command runs several times in this process.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	os.Exit(m.Run())
}

// execute runs the command and returns what it prints.
func execute(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCommand(ctx)
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestHelpText(t *testing.T) {
	got, err := execute(t.Context(), "--help")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("--help (-want +got), run with -update if it is meant:\n%s", diff)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	_, err := execute(t.Context(), "start")
	if err == nil || !strings.Contains(err.Error(), `"start"`) {
		t.Errorf("%v", err)
	}
}

func TestBadFlagsEndTheCommand(t *testing.T) {
	_, err := execute(t.Context(), "--node-name=-", "--secure-port=0")
	for _, want := range []string{"--node-name", "--secure-port"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestDataDirectoryThatCannotBeUsedIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a file in its place": file, "below a file": filepath.Join(file, "data")} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t.Context(), "--node-name=n1", "--kubeconfig="+config, "--data-dir="+path, "--secure-port="+freePort(t))
			if err == nil || !strings.Contains(err.Error(), "--data-dir") || !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name --data-dir and %s", err, path)
			}
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(strings.Join([]string{
		"apiVersion: v1", "kind: Config", `clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]`,
		"contexts: [{name: c, context: {cluster: c}}]", "current-context: c", "",
	}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := execute(ctx, "--node-name=n1", "--kubeconfig="+config, "--data-dir="+filepath.Join(dir, "data"), "--secure-port="+freePort(t)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "kube-proxy.kubeconfig")); err != nil {
		t.Error(err)
	}
}
