// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
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

func TestStandaloneServesUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dir := t.TempDir()
	ended := make(chan error, 1)
	go func() {
		_, err := execute(ctx, "--standalone", "--standalone-port=0", "--secure-port="+freePort(t), "--node-name=n1", "--data-dir="+dir)
		ended <- err
	}()
	for _, file := range []string{standalone.AdminKubeconfig, viewKubeconfig} {
		path := filepath.Join(dir, file)
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			_, err := os.Stat(path)
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("no %s: %v", file, err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		// ConfigMaps pass the view unchanged, also before its Node exists.
		err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("through %s: %v", file, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
