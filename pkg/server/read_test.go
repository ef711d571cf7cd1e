// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// fullSlice has every field of an endpoint, on n3, n2, n1 in this order.
func fullSlice(namespace string) *discoveryv1.EndpointSlice {
	s := slice("s-1", "s", "n3", "n2", "n1")
	s.Namespace = namespace
	s.Labels["extra"] = "kept"
	s.Annotations = map[string]string{"extra": "kept"}
	yes, no, http, zone, port := true, false, "http", "z", int32(8080)
	protocol := corev1.ProtocolTCP
	s.Ports = []discoveryv1.EndpointPort{{Name: &http, Port: &port, Protocol: &protocol, AppProtocol: &http}}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
		e.Zone, e.Hostname = &zone, &http
		e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}, ForNodes: []discoveryv1.ForNode{{Name: *e.NodeName}}}
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "pod-on-" + *e.NodeName, UID: "u"}
	}
	return s
}

func fullEndpoints(namespace string) *corev1.Endpoints {
	e := endpoints("s", "n3", "n2", "n1")
	e.Namespace = namespace
	e.Labels = map[string]string{"extra": "kept"}
	unready := e.Subsets[0].DeepCopy().Addresses
	for i := range unready {
		unready[i].IP = "10.0.1." + unready[i].IP[len("10.0.0."):]
		unready[i].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "unready-on-" + *unready[i].NodeName}
	}
	e.Subsets[0].NotReadyAddresses = unready
	return e
}

func TestEveryReadHasTheSameContent(t *testing.T) {
	var objects []object
	wantSlices, wantEndpoints := map[string]*discoveryv1.EndpointSlice{}, map[string]*corev1.Endpoints{}
	for _, ns := range []string{"default", "other"} {
		s := service("s", zoneKeys)
		s.Namespace = ns
		objects = append(objects, s, fullSlice(ns), fullEndpoints(ns))
		// n3 is of another unit, and comes first.
		wantedSlice, wantedEndpoints := fullSlice(ns), fullEndpoints(ns)
		wantedSlice.Endpoints = wantedSlice.Endpoints[1:]
		subset := &wantedEndpoints.Subsets[0]
		subset.Addresses, subset.NotReadyAddresses = subset.Addresses[1:], subset.NotReadyAddresses[1:]
		wantSlices[ns], wantEndpoints[ns] = wantedSlice, wantedEndpoints
	}
	g := readyGrid(t, startUpstream(t, append(fourNodes(), objects...)...))
	compare := func(t *testing.T, how string, got object) {
		t.Helper()
		got = got.DeepCopyObject().(object)
		if got.GetResourceVersion() == "" {
			t.Errorf("%s: no resourceVersion", how)
		}
		got.SetResourceVersion("")
		got.SetUID("")
		got.SetCreationTimestamp(metav1.Time{})
		var diff string
		switch got := got.(type) {
		case *discoveryv1.EndpointSlice:
			diff = cmp.Diff(wantSlices[got.Namespace], got)
		case *corev1.Endpoints:
			diff = cmp.Diff(wantEndpoints[got.Namespace], got)
		}
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	for _, contentType := range []string{asJSON, asProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			client := newClient(t, g.as(contentType))
			for _, ns := range []string{"default", "other"} {
				s, err := client.DiscoveryV1().EndpointSlices(ns).Get(t.Context(), "s-1", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, "GET", s)
				e, err := client.CoreV1().Endpoints(ns).Get(t.Context(), "s", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, "GET", e)
			}
			for _, ns := range []string{"", "default", "other"} {
				for _, got := range listAll(t, client, ns) {
					compare(t, "LIST in "+ns, got)
				}
				for _, got := range watchAll(t, client, ns) {
					compare(t, "WATCH in "+ns, got)
				}
			}
		})
	}
}

// collections is how many objects of one kind are in a namespace of the test.
func collections(namespace string) int {
	if namespace == "" {
		return 2
	}
	return 1
}

func listAll(t *testing.T, client kubernetes.Interface, namespace string) []object {
	t.Helper()
	var all []object
	slices, err := client.DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range slices.Items {
		all = append(all, &slices.Items[i])
	}
	eps, err := client.CoreV1().Endpoints(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range eps.Items {
		all = append(all, &eps.Items[i])
	}
	if len(slices.Items) != collections(namespace) || len(eps.Items) != collections(namespace) {
		t.Fatalf("LIST in %q: %d slices and %d Endpoints", namespace, len(slices.Items), len(eps.Items))
	}
	return all
}

func watchAll(t *testing.T, client kubernetes.Interface, namespace string) []object {
	t.Helper()
	var all []object
	for _, w := range []watcher{client.DiscoveryV1().EndpointSlices(namespace), client.CoreV1().Endpoints(namespace)} {
		// Without a resourceVersion a watch begins with what is there.
		opened, err := w.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range collections(namespace) {
			event := <-opened.ResultChan()
			o, ok := event.Object.(object)
			if event.Type != watch.Added || !ok {
				t.Fatalf("WATCH in %q: %v", namespace, event)
			}
			all = append(all, o)
		}
		opened.Stop()
	}
	return all
}

func TestWatchFalseLists(t *testing.T) {
	g := readyGrid(t, startUpstream(t, fixture(slice("s-1", "s", "n1", "n3"))...))
	for _, query := range []string{"watch=false", "watch=0"} {
		a := g.get(t, g.local, "/apis/discovery.k8s.io/v1/endpointslices?"+query, asJSON)
		list := decode[discoveryv1.EndpointSliceList](t, a)
		if a.code != http.StatusOK || list.Kind != "EndpointSliceList" || len(list.Items) != 1 || len(list.Items[0].Endpoints) != 1 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}

func TestWhatIsNotFilteredIsAsUpstreamHasIt(t *testing.T) {
	headless := service("headless", noPolicy)
	headless.Spec.ClusterIP, headless.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	foreign := service("foreign", noPolicy)
	foreign.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
	foreignSlice := slice("foreign-1", "foreign", "n1", "n3", "-")
	foreignSlice.Labels["service.kubernetes.io/service-proxy-name"] = "other"
	managed := service("plain", noPolicy)
	managed.Generation = 7
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1"}}
	cluster := service("kubernetes", noPolicy)
	u := startUpstream(t, fixture(
		managed, slice("plain-1", "plain", "n1", "n3", "-"), endpoints("plain", "n1", "n3", "-"),
		headless, slice("headless-1", "headless", "n3"), endpoints("headless", "n3"), slice("headless-2", "headless"),
		foreign, foreignSlice, endpoints("foreign", "n1", "n3"),
		cluster, slice("kubernetes", "kubernetes", "-"), endpoints("kubernetes", "-"), namespace("default"),
	)...)
	client, raw := readyGrid(t, u).client(t), u.client(t)
	for _, name := range []string{"plain", "headless", "foreign", "kubernetes"} {
		equalToUpstream(t, client.CoreV1().Services("default"), raw.CoreV1().Services("default"), name)
		equalToUpstream(t, client.CoreV1().Endpoints("default"), raw.CoreV1().Endpoints("default"), name)
	}
	for _, name := range []string{"plain-1", "headless-1", "headless-2", "foreign-1", "kubernetes"} {
		equalToUpstream(t, client.DiscoveryV1().EndpointSlices("default"), raw.DiscoveryV1().EndpointSlices("default"), name)
	}
	// The filtered Service itself is shown whole, with its annotation.
	equalToUpstream(t, client.CoreV1().Services("default"), raw.CoreV1().Services("default"), "s")
	equalToUpstream(t, client.CoreV1().Nodes(), raw.CoreV1().Nodes(), "n1")
	equalToUpstream(t, client.CoreV1().Namespaces(), raw.CoreV1().Namespaces(), "default")
}

type getter[T object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
}

// equalToUpstream compares all but the resourceVersion.
func equalToUpstream[T object](t *testing.T, client, upstream getter[T], name string) {
	t.Helper()
	got, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	want, err := upstream.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got.SetResourceVersion("")
	want.SetResourceVersion("")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%T %s (-upstream +got):\n%s", got, name, diff)
	}
}
