// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

var quiet = flag.Duration("quiet", 3*time.Second, "How long TestSteadyStateWritesNothing watches; a second with -short.")

func newGrid() *superedgev1.ServiceGrid {
	return &superedgev1.ServiceGrid{
		ObjectMeta: metav1.ObjectMeta{Name: "echo", Namespace: "default", Labels: map[string]string{"team": "edge"}, Annotations: map[string]string{
			"example.org/note": "kept", "topologyKeys": `["another"]`,
		}},
		Spec: superedgev1.ServiceGridSpec{GridUniqKey: "zone1", Template: corev1.ServiceSpec{
			Selector: map[string]string{"app": "echo"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		}},
	}
}

// gridObjects are a ServiceGrid over two nodes in two units, with a Pod on each.
func gridObjects() []runtime.Object {
	labels := map[string]string{"app": "echo"}
	return []runtime.Object{
		newNode("n1", map[string]string{"zone1": "a"}), newNode("n2", map[string]string{"zone1": "b"}),
		newPod("echo-1", "n1", "10.244.1.10", labels), newPod("echo-2", "n2", "10.244.2.10", labels), newGrid(),
	}
}

func waitService(t *testing.T, client kubernetes.Interface, name string, right func(*corev1.Service) bool) *corev1.Service {
	t.Helper()
	var found *corev1.Service
	eventually(t, func(ctx context.Context) string {
		service, err := client.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || !right(service) {
			return fmt.Sprintf("%v, %v", service, err)
		}
		found = service
		return ""
	})
	return found
}

func anyService(*corev1.Service) bool { return true }

func TestServiceGridFromItsCreationToItsEnd(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{Node: newNode("n1", nil), Objects: gridObjects()})
	gridClient, err := versioned.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	grids := gridClient.SuperedgeV1().ServiceGrids("default")
	service := waitService(t, client, "echo-svc", anyService)
	grid, err := grids.Get(t.Context(), "echo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := metav1.ObjectMeta{
		Labels:      map[string]string{"team": "edge", "superedge.io/grid-selector": "echo", "superedge.io/grid-uniq-key": "zone1"},
		Annotations: map[string]string{"topologyKeys": `["zone1"]`, "example.org/note": "kept", "superedge.io/carried-keys": service.Annotations["superedge.io/carried-keys"]},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(grid, superedgev1.SchemeGroupVersion.WithKind("ServiceGrid")),
		},
	}
	got := metav1.ObjectMeta{Labels: service.Labels, Annotations: service.Annotations, OwnerReferences: service.OwnerReferences}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Service (-want +got):\n%s", diff)
	}
	if service.Spec.ClusterIP == "" || service.Spec.Ports[0].TargetPort.IntValue() != 80 {
		t.Errorf("the Service lacks defaults: %v", service.Spec)
	}
	waitAddresses(t, client, "echo-svc", "10.244.1.10", "10.244.2.10")
	waitAddresses(t, newClient(t, server.View), "echo-svc", "10.244.1.10")

	// Ports, type and selector go on to the Service, which keeps what it was allocated.
	patch := `{"spec":{"template":{"type":"NodePort","selector":{"app":"none"},"ports":[{"name":"http","port":81},{"name":"more","port":82}]}}}`
	if _, err := grids.Patch(t.Context(), "echo", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := waitService(t, client, "echo-svc", func(s *corev1.Service) bool { return len(s.Spec.Ports) == 2 })
	if changed.Spec.ClusterIP != service.Spec.ClusterIP || changed.UID != service.UID {
		t.Errorf("cluster IP %s, before %s", changed.Spec.ClusterIP, service.Spec.ClusterIP)
	}
	if changed.Spec.Type != corev1.ServiceTypeNodePort || changed.Spec.Ports[0].Port != 81 || changed.Spec.Ports[0].NodePort == 0 || changed.Spec.Selector["app"] != "none" {
		t.Errorf("the Service: %v", changed.Spec)
	}
	waitAddresses(t, client, "echo-svc")
	if _, err := grids.Patch(t.Context(), "echo", types.MergePatchType, []byte(`{"metadata":{"labels":{"more":"x"}},"spec":{"gridUniqKey":"zone2"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	again := waitService(t, client, "echo-svc", func(s *corev1.Service) bool {
		return s.Annotations["topologyKeys"] == `["zone2"]` && s.Labels["more"] == "x"
	})
	if again.Spec.Ports[0].NodePort != changed.Spec.Ports[0].NodePort {
		t.Errorf("node port %d, before %d", again.Spec.Ports[0].NodePort, changed.Spec.Ports[0].NodePort)
	}
	// The status tells of it.
	eventually(t, func(ctx context.Context) string {
		grid, err := grids.Get(ctx, "echo", metav1.GetOptions{})
		if err != nil || grid.Status.ServiceName != "echo-svc" || grid.Status.ClusterIP != service.Spec.ClusterIP || grid.Status.ObservedGeneration != grid.Generation {
			return fmt.Sprintf("the status: %v, %v", grid.Status, err)
		}
		return ""
	})

	// A Service that somebody deletes comes back; it goes with its ServiceGrid.
	if err := client.CoreV1().Services("default").Delete(t.Context(), "echo-svc", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitService(t, client, "echo-svc", func(s *corev1.Service) bool { return s.UID != service.UID })
	if err := grids.Delete(t.Context(), "echo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		_, service := client.CoreV1().Services("default").Get(ctx, "echo-svc", metav1.GetOptions{})
		_, endpoints := client.CoreV1().Endpoints("default").Get(ctx, "echo-svc", metav1.GetOptions{})
		slices, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=echo-svc"})
		if !apierrors.IsNotFound(service) || !apierrors.IsNotFound(endpoints) || err != nil || len(slices.Items) > 0 {
			return fmt.Sprintf("left: Service %v, Endpoints %v, EndpointSlices %v", service, endpoints, slices)
		}
		return ""
	})
}

func TestServiceGridWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	server, _ := start(t, testserver.Options{})
	client, err := versioned.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "zone 1", "a/b/c"} {
		grid := newGrid()
		grid.Spec.GridUniqKey = key
		if _, err := client.SuperedgeV1().ServiceGrids("default").Create(t.Context(), grid, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// writes counts the requests that may write, of all servers in this process.
func writes(t *testing.T) (total int) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_request_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() != "verb" {
					continue
				}
				switch label.GetValue() {
				case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
					total += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return total
}

// It is not parallel, because the requests are those of the process. The
// controllers look at everything again every second, and more often at objects
// that change in what is not theirs: a strange annotation of the Service that they
// made, a strange label of its Pod, and so on.
func TestSteadyStateWritesNothing(t *testing.T) {
	objects := gridObjects()
	_, client := start(t, testserver.Options{Objects: objects, ResyncPeriod: time.Second})
	waitAddresses(t, client, "echo-svc", "10.244.1.10", "10.244.2.10")
	// Statuses and Events of the start are still written.
	settled := func() {
		last, since, looks := writes(t), time.Now(), 0
		eventually(t, func(context.Context) string {
			if now := writes(t); now != last {
				last, since, looks = now, time.Now(), 0
			}
			// Nothing can be written either while this process gets no time.
			if looks++; looks < 50 || time.Since(since) < 2*time.Second {
				return "there are still writes"
			}
			return ""
		})
	}
	settled()
	before, mine := writes(t), 0
	if before == 0 {
		t.Fatal("no write was counted, though there were some")
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	watched := *quiet
	if testing.Short() {
		watched = time.Second
	}
	for begin := time.Now(); time.Since(begin) < watched; mine += 5 {
		<-ticker.C
		touch := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"example.org/seen":"%d"}}}`, mine))
		for _, err := range []error{
			touched(client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, touch, metav1.PatchOptions{})),
			touched(client.CoreV1().Pods("default").Patch(t.Context(), "echo-1", types.MergePatchType, bytes.Replace(touch, []byte("annotations"), []byte("labels"), 1), metav1.PatchOptions{})),
			touched(client.CoreV1().Services("default").Patch(t.Context(), "echo-svc", types.MergePatchType, touch, metav1.PatchOptions{})),
			touched(client.CoreV1().Services("default").Patch(t.Context(), "kubernetes", types.MergePatchType, touch, metav1.PatchOptions{})),
			touched(client.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType, touch, metav1.PatchOptions{})),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	settled()
	if got := writes(t) - before; got != mine {
		t.Errorf("%d writes, %d of them by this test", got, mine)
	}
}

func touched[T any](_ T, err error) error { return err }
