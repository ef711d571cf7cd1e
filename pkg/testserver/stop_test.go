// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestContextThatHasEndedStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if server, err := testserver.Run(ctx, testserver.Options{}); !errors.Is(err, context.Canceled) || server != nil {
		t.Errorf("got %v and %v", server, err)
	}
}

func TestStopMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server, err := testserver.Run(ctx, testserver.Options{Node: newNode("n1", nil)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var stops sync.WaitGroup
	for range 3 {
		stops.Go(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	stops.Wait()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := server.StartView(t.Context(), "n2"); err == nil {
		t.Error("a view of a server that has ended")
	}
	for _, config := range []*rest.Config{server.Upstream, server.View} {
		if err := dial(config); err == nil {
			t.Errorf("%s is still open", config.Host)
		}
	}
}

// dial says whether anybody listens.
func dial(config *rest.Config) error {
	location, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	connection, err := net.DialTimeout("tcp", location.Host, patience)
	if err == nil {
		connection.Close()
	}
	return err
}

// The moments are those at which files appear in the data directory.
func TestEndDuringTheStart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".", "standalone/lock", "admin.kubeconfig", "view-n1", "view-n1.kubeconfig"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				ticker := time.NewTicker(time.Millisecond)
				defer ticker.Stop()
				for ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
						cancel()
						return
					}
					<-ticker.C
				}
			}()
			server, err := testserver.Run(ctx, testserver.Options{DataDir: dir, Node: newNode("n1", nil)})
			if err == nil {
				err = server.Stop()
			} else if errors.Is(err, context.Canceled) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
			// Nobody holds the directory any more.
			start(t, testserver.Options{DataDir: dir, Node: newNode("n1", nil)})
		})
	}
}

func TestStopDoesNotWaitForClients(t *testing.T) {
	server, client := start(t, testserver.Options{Node: newNode("n1", nil), Objects: []runtime.Object{newConfigMap("a", nil)}})
	view := newClient(t, server.View)
	var open []watch.Interface
	for range 10 {
		for _, from := range []kubernetes.Interface{client, view} {
			watching, err := from.CoreV1().Services("").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			<-watching.ResultChan() // it is being served
			open = append(open, watching)
		}
	}
	begin := time.Now()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	t.Logf("stopped in %v", took)
	// A bound against hanging; internal/connections has the test of what makes it fast.
	if took > 10*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for _, one := range open {
		for range one.ResultChan() { // until it is closed
		}
	}
}

func TestManyServersInOneProcess(t *testing.T) {
	count := 50
	if testing.Short() {
		count = 10
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := goleak.IgnoreCurrent()
	servers := make([]*testserver.Server, count)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	var group sync.WaitGroup
	// With more at a time a busy machine does not get to each handshake in the ten
	// seconds that a client waits for it.
	starting := make(chan struct{}, 8)
	for i := range servers {
		group.Go(func() {
			starting <- struct{}{}
			defer func() { <-starting }()
			var err error
			if servers[i], err = useOne(ctx, i); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
		})
	}
	group.Wait()
	// All of them run at this moment, and each has its own objects alone.
	for i, server := range servers {
		if server == nil {
			continue
		}
		group.Go(func() {
			if err := hasOnly(ctx, server, i); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
			if err := server.Stop(); err != nil {
				t.Errorf("stopping server %d: %v", i, err)
			}
			if err := dial(server.Upstream); err == nil {
				t.Errorf("the port of server %d is still open", i)
			}
		})
	}
	group.Wait()
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	// It looks for half a second.
	eventually(t, func(context.Context) string {
		if err := goleak.Find(append(processGoroutines(), before)...); err != nil {
			return err.Error()
		}
		return ""
	})
}

// useOne starts a server and waits until a Service of it leads to two Pods.
func useOne(ctx context.Context, number int) (*testserver.Server, error) {
	name := fmt.Sprint("s", number)
	labels := map[string]string{"app": name}
	server, err := testserver.Run(ctx, testserver.Options{Objects: []runtime.Object{
		newNode("n1", nil), newService(name, nil),
		newPod(name+"-a", "n1", fmt.Sprintf("10.1.%d.1", number), labels), newPod(name+"-b", "n1", fmt.Sprintf("10.1.%d.2", number), labels),
	}})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(server.Upstream)
	if err != nil {
		return server, err
	}
	defer client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	want := []string{fmt.Sprintf("10.1.%d.1", number), fmt.Sprintf("10.1.%d.2", number)}
	ticker := time.NewTicker(50 * time.Millisecond) // they share the machine with the servers
	defer ticker.Stop()
	last := errors.New("it was not asked yet")
	for {
		endpoints, slices, err := addressesOf(ctx, client, name)
		if err == nil && sameElements(want, endpoints) && sameElements(want, slices) {
			return server, nil
		}
		if ctx.Err() != nil {
			return server, fmt.Errorf("the last state before the time was up: %w", last)
		}
		last = fmt.Errorf("endpoints %v, slices %v, error %v; want %v", endpoints, slices, err, want) //nolint:errorlint // it may be nil
		<-ticker.C
	}
}

func hasOnly(ctx context.Context, server *testserver.Server, number int) error {
	client, err := kubernetes.NewForConfig(server.Upstream)
	if err != nil {
		return err
	}
	defer client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	var got []string
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		got = append(got, pod.Name)
	}
	services, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, service := range services.Items {
		got = append(got, service.Name)
	}
	name := fmt.Sprint("s", number)
	if want := []string{name + "-a", name + "-b", "kubernetes", name}; !sameElements(want, got) {
		return fmt.Errorf("it has %v, want %v", got, want)
	}
	return nil
}
