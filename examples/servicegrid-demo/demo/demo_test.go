// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestMain(m *testing.M) {
	testserver.DiscardLogs()
	goleak.VerifyTestMain(m,
		// The health check "log" of k8s.io/apiserver runs once per process.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/healthz.(*log).Check.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		// A read at a resourceVersion leaves a timer of 3 s behind.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// text is an io.Writer whose content may be read meanwhile.
type text struct {
	mu      sync.Mutex
	content strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.content.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.content.String()
}

var (
	address  = regexp.MustCompile(`10\.96\.\d+\.\d+ *`)
	after    = regexp.MustCompile(`after +\d+ ms`)
	progress = regexp.MustCompile(`(?m)^  \.\.\. \d+ s\n`)
	event    = regexp.MustCompile(`(?m)^  after .*\n`)
)

// shape is the output without what differs from run to run.
func shape(output string) string {
	output = progress.ReplaceAllString(output, "")
	output = address.ReplaceAllString(output, "<cluster IP>  ")
	output = after.ReplaceAllString(output, "after <time>")
	// The views are independent of each other.
	lines := event.FindAllString(output, -1)
	output = event.ReplaceAllString(output, "")
	for _, node := range []string{"edge-1", "edge-2", "edge-3"} {
		for _, line := range lines {
			if strings.Contains(line, "the watch of "+node) {
				output += line
			}
		}
	}
	return output
}

const wanted = `Starting an API server that keeps everything in memory
Applying ..: 3 nodes in 2 units, 3 pods, 1 ServiceGrid
Starting the view of each node
Waiting for the controllers and the views

What each node sees of the Service servicegrid-demo-svc:

  NODE    UNIT       CLUSTER-IP     ENDPOINTS
  edge-1  nodeunit1  <cluster IP>  echo-1 (10.244.1.10), echo-2 (10.244.2.10)
  edge-2  nodeunit1  <cluster IP>  echo-1 (10.244.1.10), echo-2 (10.244.2.10)
  edge-3  nodeunit2  <cluster IP>  echo-3 (10.244.3.10)

Now the node edge-2 moves: kubectl label node edge-2 zone1=nodeunit2 --overwrite


What each node sees now:

  NODE    UNIT       CLUSTER-IP     ENDPOINTS
  edge-1  nodeunit1  <cluster IP>  echo-1 (10.244.1.10)
  edge-2  nodeunit2  <cluster IP>  echo-2 (10.244.2.10), echo-3 (10.244.3.10)
  edge-3  nodeunit2  <cluster IP>  echo-2 (10.244.2.10), echo-3 (10.244.3.10)

Every view was right.
  after <time>  the watch of edge-1 says MODIFIED: echo-1 (10.244.1.10), echo-2 (10.244.2.10) -> echo-1 (10.244.1.10)
  after <time>  the watch of edge-2 says MODIFIED: echo-1 (10.244.1.10), echo-2 (10.244.2.10) -> echo-2 (10.244.2.10), echo-3 (10.244.3.10)
  after <time>  the watch of edge-3 says MODIFIED: echo-3 (10.244.3.10) -> echo-2 (10.244.2.10), echo-3 (10.244.3.10)
`

// columns makes the width of the column of cluster IPs the same in all runs.
var columns = regexp.MustCompile(`CLUSTER-IP +`)

func TestDemoShowsWhatEachNodeSees(t *testing.T) {
	out := &text{}
	if err := run(t.Context(), out, options{manifests: "..", dir: t.TempDir(), exit: true}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compact := func(s string) string { return columns.ReplaceAllString(s, "CLUSTER-IP  ") }
	if diff := cmp.Diff(compact(wanted), compact(shape(out.String()))); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestDemoGoesOnUntilItIsInterrupted(t *testing.T) {
	out, dir := &text{}, t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, options{manifests: "..", dir: dir}) }()
	waitFor(t, out, "It goes on until Ctrl-C", ended)
	for _, name := range []string{standalone.AdminKubeconfig, "view-edge-1.kubeconfig", "view-edge-2.kubeconfig", "view-edge-3.kubeconfig"} {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Services("default").Get(t.Context(), service, metav1.GetOptions{}); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
		client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	}
	// A second demo says where the first one is.
	if err := run(t.Context(), &text{}, options{manifests: "..", dir: dir, exit: true}); !errors.Is(err, standalone.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second demo: %v", err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("after the interruption: %v", err)
	}
}

func TestInterruptionBeforeTheCheckIsNoSuccess(t *testing.T) {
	out := &text{}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, options{manifests: "..", dir: t.TempDir(), exit: true}) }()
	waitFor(t, out, "Applying", ended)
	interrupt()
	if err := <-ended; err == nil {
		t.Error("no error, though nothing was checked")
	}
}

func waitFor(t *testing.T, out *text, want string, ended <-chan error) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !strings.Contains(out.String(), want) {
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v and has not said %q:\n%s", err, want, out)
		case <-ticker.C:
		}
	}
}

// What is wrong with the manifests makes the demo fail, and say why.
func TestWrongManifestsMakeTheDemoFail(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, want string }{
		"an invalid Pod":  {"20-pods.yaml", "name: echo-1", "name: ECHO", "Pod ECHO"},
		"no unit changes": {"10-nodes.yaml", "zone1: nodeunit1", "zone1: nodeunit2", "moves to nodeunit2"},
		"the moved node":  {"10-nodes.yaml", "name: edge-2", "name: edge-9", "edge-2"},
		"no YAML":         {"30-servicegrid.yaml", "kind:", "kind", "30-servicegrid.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{"10-nodes.yaml", "20-pods.yaml", "30-servicegrid.yaml"} {
				content, err := os.ReadFile(filepath.Join("..", file))
				if err != nil {
					t.Fatal(err)
				}
				if file == test.file {
					content = []byte(strings.ReplaceAll(string(content), test.old, test.new))
				}
				if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := &text{}
			err := run(t.Context(), out, options{manifests: dir, dir: t.TempDir(), exit: true})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that names %q", err, test.want)
			}
			if strings.Contains(out.String(), "Every view was right") {
				t.Error("it says that every view was right")
			}
		})
	}
}

// expected is worked out without the code that it judges.
func TestExpectedEndpointsAreThoseOfTheUnit(t *testing.T) {
	server := testserver.Start(t, testserver.Options{Manifests: []string{".."}, WithoutControllers: true})
	client, err := kubernetes.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	got, err := expected(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]endpoints{
		"edge-1": {"echo-1 (10.244.1.10)", "echo-2 (10.244.2.10)"},
		"edge-2": {"echo-1 (10.244.1.10)", "echo-2 (10.244.2.10)"},
		"edge-3": {"echo-3 (10.244.3.10)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
