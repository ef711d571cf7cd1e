// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestMain(m *testing.M) {
	testserver.DiscardLogs()
	goleak.VerifyTestMain(m, processGoroutines()...)
}

// processGoroutines are those of the libraries that do not belong to a server.
func processGoroutines() []goleak.Option {
	return []goleak.Option{
		// The health check "log" of k8s.io/apiserver runs once per process.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/healthz.(*log).Check.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		// A read at a resourceVersion leaves a timer of 3 s behind.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"),
		// The storage of a definition that went is kept for a second.
		goleak.IgnoreAnyFunction("k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).tearDown"),
	}
}

// patience is for what takes milliseconds on a machine that does nothing else.
const patience = time.Minute

func newClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return client
}

// start runs a server, and returns it with a client of it.
func start(t testing.TB, options testserver.Options) (*testserver.Server, kubernetes.Interface) {
	t.Helper()
	server := testserver.Start(t, options)
	return server, newClient(t, server.Upstream)
}

// eventually waits until done says "". It fails the test with what it said last.
func eventually(t testing.TB, done func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := done(ctx)
		if last == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(last)
		case <-ticker.C:
		}
	}
}

func newNode(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// newPod is a Pod that is ready, on a node.
func newPod(name, node, ip string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/echo"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: data}
}

func newService(name string, annotations map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// addressesOf are those of the Endpoints and of the EndpointSlices of a Service, as a client sees them.
func addressesOf(ctx context.Context, client kubernetes.Interface, service string) (endpoints, slices []string, err error) {
	found, err := client.CoreV1().Endpoints("default").Get(ctx, service, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, subset := range found.Subsets {
		for _, address := range subset.Addresses {
			endpoints = append(endpoints, address.IP)
		}
	}
	all, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		return nil, nil, err
	}
	for _, slice := range all.Items {
		for _, endpoint := range slice.Endpoints {
			slices = append(slices, endpoint.Addresses...)
		}
	}
	return endpoints, slices, nil
}

// waitAddresses waits until a Service leads to the given addresses, however it is asked.
func waitAddresses(t testing.TB, client kubernetes.Interface, service string, want ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		endpoints, slices, err := addressesOf(ctx, client, service)
		if err == nil && sameElements(want, endpoints) && sameElements(want, slices) {
			return ""
		}
		return fmt.Sprintf("Endpoints %v, EndpointSlices %v, error %v; want %v", endpoints, slices, err, want)
	})
}

func sameElements(a, b []string) bool {
	count := map[string]int{}
	for _, one := range a {
		count[one]++
	}
	for _, one := range b {
		count[one]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return len(a) == len(b)
}
