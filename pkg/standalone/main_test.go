// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The health check "log" of k8s.io/apiserver runs once per process.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/healthz.(*log).Check.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		// A read at a resourceVersion leaves a timer of 3 s behind.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"),
		// The storage of a definition that went is kept for a second.
		goleak.IgnoreAnyFunction("k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).tearDown"))
}

// newConfig is what a server needs, on a port that is free.
func newConfig(t testing.TB) *standalone.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &standalone.Config{
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener}, DataDir: t.TempDir(),
	}
}

// start runs a server that ends with the test.
func start(t testing.TB, config *standalone.Config) (*standalone.Server, kubernetes.Interface) {
	t.Helper()
	server, err := config.Complete().New(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.PrepareRun().Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := server.WaitReady(starting); err != nil {
		t.Fatal(err)
	}
	return server, newClient(t, server.ClientConfig())
}

func newClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return client
}
