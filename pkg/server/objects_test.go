// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const (
	zoneKeys = `["zone1"]`
	noPolicy = ""
)

func node(name, zone string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if zone != "" {
		n.Labels["zone1"] = zone
	}
	return n
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func service(name, topologyKeys string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
	if topologyKeys != noPolicy {
		s.Annotations = map[string]string{"topologyKeys": topologyKeys}
	}
	return s
}

// address is that of the endpoint on a node: n3 has 10.0.0.3. The endpoint on
// "-" has no nodeName.
func address(nodeName string) string {
	if nodeName == "-" {
		return "10.0.0.99"
	}
	return "10.0.0." + strings.TrimLeft(nodeName, "n-")
}

func nodeAt(address string) string {
	last := strings.TrimPrefix(address, "10.0.0.")
	if last == "99" {
		return "-"
	}
	return "n" + last
}

// slice is an EndpointSlice of the Service; "" is none.
func slice(name, service string, nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if service != "" {
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	for _, n := range nodes {
		e := discoveryv1.Endpoint{Addresses: []string{address(n)}}
		if n != "-" {
			e.NodeName = &n
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func endpoints(name string, nodes ...string) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if len(nodes) == 0 {
		return e
	}
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: 80}}}
	for _, n := range nodes {
		a := corev1.EndpointAddress{IP: address(n)}
		if n != "-" {
			a.NodeName = &n
		}
		subset.Addresses = append(subset.Addresses, a)
	}
	e.Subsets = []corev1.EndpointSubset{subset}
	return e
}

// fourNodes are this node n1 and n2 in its unit, n3 in another, n4 in none.
func fourNodes() []object {
	return []object{node("n1", "a"), node("n2", "a"), node("n3", "b"), node("n4", "")}
}

// fixture is four nodes and the Service s, closed over its unit, with more.
func fixture(more ...object) []object {
	return append(append(fourNodes(), service("s", zoneKeys)), more...)
}

// summary names an object and the nodes of its endpoints, like "s-1[n1 n2]".
func summary(o any) string {
	switch o := o.(type) {
	case *discoveryv1.EndpointSlice:
		nodes := []string{}
		for _, e := range o.Endpoints {
			nodes = append(nodes, nodeAt(e.Addresses[0]))
		}
		return fmt.Sprint(o.Name, nodes)
	case *corev1.Endpoints:
		nodes := []string{}
		for _, s := range o.Subsets {
			for _, a := range s.Addresses {
				nodes = append(nodes, nodeAt(a.IP))
			}
		}
		return fmt.Sprint(o.Name, nodes)
	case metav1.Object:
		return o.GetName()
	}
	return fmt.Sprintf("%T", o)
}

// slicesOf and endpointsOf summarise what a client lists.
func slicesOf(t testing.TB, client kubernetes.Interface) []string {
	t.Helper()
	list, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for i := range list.Items {
		got = append(got, summary(&list.Items[i]))
	}
	return got
}

func endpointsOf(t testing.TB, client kubernetes.Interface) []string {
	t.Helper()
	list, err := client.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for i := range list.Items {
		got = append(got, summary(&list.Items[i]))
	}
	return got
}

// becomes waits until list gives want.
func becomes(t testing.TB, limit time.Duration, list func(testing.TB, kubernetes.Interface) []string, client kubernetes.Interface, want ...string) {
	t.Helper()
	var diff string
	eventually(t, limit, func() bool {
		diff = cmp.Diff(want, list(t, client))
		return diff == ""
	}, func() any { return "(-want +got):\n" + diff })
}

// events are those of an open watch. Their resourceVersions must grow.
type events struct {
	t        testing.TB
	watch    watch.Interface
	revision uint64
}

type watcher interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// follow watches from a resourceVersion.
func follow(t testing.TB, client watcher, resourceVersion string) *events {
	t.Helper()
	w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	e := &events{t: t, watch: w}
	e.revision, _ = strconv.ParseUint(resourceVersion, 10, 64)
	return e
}

// followSlices and followEndpoints watch from now on.
func followSlices(t testing.TB, client kubernetes.Interface) *events {
	t.Helper()
	list, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, client.DiscoveryV1().EndpointSlices(""), list.ResourceVersion)
}

func followEndpoints(t testing.TB, client kubernetes.Interface) *events {
	t.Helper()
	list, err := client.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, client.CoreV1().Endpoints(""), list.ResourceVersion)
}

func followServices(t testing.TB, client kubernetes.Interface) *events {
	t.Helper()
	list, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, client.CoreV1().Services(""), list.ResourceVersion)
}

// next returns the next event, like "MODIFIED s-1[n1]".
func (e *events) next(limit time.Duration) string {
	e.t.Helper()
	select {
	case event, ok := <-e.watch.ResultChan():
		if !ok {
			return "the watch has ended"
		}
		o, ok := event.Object.(metav1.Object)
		if !ok {
			return fmt.Sprintf("%s %+v", event.Type, event.Object)
		}
		revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		if err != nil || revision <= e.revision {
			e.t.Errorf("%s %s has resourceVersion %s, want one above %d", event.Type, summary(o), o.GetResourceVersion(), e.revision)
		}
		e.revision = revision
		return string(event.Type) + " " + summary(o)
	case <-time.After(limit):
		return "nothing"
	}
}

// want asserts the next events, in any order: a batch has none that matters.
func (e *events) want(limit time.Duration, want ...string) {
	e.t.Helper()
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for deadline := time.Now().Add(limit); len(missing) > 0; {
		got := e.next(max(time.Until(deadline), time.Millisecond))
		if !missing[got] {
			e.t.Fatalf("%s, want one of %v", got, missing)
		}
		delete(missing, got)
	}
}
