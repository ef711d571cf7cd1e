// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// ownNode is the node whose view the tests look at.
const ownNode = "n1"

// memoryFloor is a FloorStore without a disk.
type memoryFloor struct{ floor uint64 }

func (m *memoryFloor) RevisionFloor() (uint64, error) { return m.floor, nil }

func (m *memoryFloor) SetRevisionFloor(floor uint64) error {
	m.floor = floor
	return nil
}

// storeKind is a resource and its types.
type storeKind struct {
	resource         string
	newFunc, newList func() runtime.Object
}

// viewKinds are the resources of the view.
var viewKinds = []storeKind{
	{"services", func() runtime.Object { return &corev1.Service{} }, func() runtime.Object { return &corev1.ServiceList{} }},
	{"endpointslices", func() runtime.Object { return &discoveryv1.EndpointSlice{} }, func() runtime.Object { return &discoveryv1.EndpointSliceList{} }},
	{"endpoints", func() runtime.Object { return &corev1.Endpoints{} }, func() runtime.Object { return &corev1.EndpointsList{} }},
}

// newStore returns an empty store that keeps that many changes, 0 for the default.
func (k storeKind) newStore(revision uint64, limit int) (*memory.Store, error) {
	return memory.New(memory.Config{
		GroupResource: schema.GroupResource{Resource: k.resource}, ResourcePrefix: "/" + k.resource,
		NewFunc: k.newFunc, NewListFunc: k.newList, InitialRevision: revision, HistoryLimit: limit,
	})
}

// fixture is a view with its stores.
type fixture struct {
	t       testing.TB
	view    *View
	domains *fakeDomains
	stores  map[string]*memory.Store
	nodes   map[string]map[string]string
}

func newFixture(t testing.TB, localEndpoint *topology.LocalEndpoint) *fixture {
	t.Helper()
	f := &fixture{t: t, domains: &fakeDomains{}, stores: map[string]*memory.Store{}, nodes: map[string]map[string]string{}}
	revisions := NewRevisions(t.Context(), &memoryFloor{}, time.Now())
	for _, kind := range viewKinds {
		store, err := kind.newStore(revisions.Start(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Stop)
		f.stores[kind.resource] = store
	}
	f.view = NewView(t.Context(), ViewConfig{
		NodeName: ownNode, Services: f.stores["services"], EndpointSlices: f.stores["endpointslices"], Endpoints: f.stores["endpoints"],
		Revisions: revisions, Domains: f.domains, LocalEndpoint: localEndpoint,
	})
	return f
}

// setNode adds or relabels a Node upstream; nil labels delete it.
func (f *fixture) setNode(name string, labels map[string]string) {
	if labels == nil {
		delete(f.nodes, name)
	} else {
		f.nodes[name] = labels
	}
	if name == ownNode && labels != nil {
		f.view.SetOwnLabels(labels)
	}
	f.deliver()
}

// deliver brings every open domain watch up to date with the nodes.
func (f *fixture) deliver() {
	// A delivery can open further watches.
	for i := 0; i < len(f.domains.watches); i++ {
		w := f.domains.watches[i]
		if w.stopped {
			continue
		}
		f.sync(w)
	}
}

func (f *fixture) sync(w *fakeWatch) {
	var names []string
	for name, labels := range f.nodes {
		member := labels[w.key] == w.value
		if member {
			names = append(names, name)
		}
		if w.synced && member {
			w.sink.Add(name)
		} else if w.synced {
			w.sink.Delete(name)
		}
	}
	if w.synced {
		// Names of deleted Nodes.
		for _, name := range allNodes {
			if _, ok := f.nodes[name]; !ok {
				w.sink.Delete(name)
			}
		}
		return
	}
	w.synced = true
	w.sink.Replace(names)
}

var allNodes = []string{"n1", "n2", "n3", "n4", "n5"}

// start tells that nothing is there yet, so that the view is complete.
func (f *fixture) start() {
	f.view.ReplaceServices(nil)
	f.view.ReplaceEndpointSlices(nil)
	f.view.ReplaceEndpoints(nil)
	f.view.SetKubernetesAnnotations(nil)
}

// standard is the fixture of most tests: n1 and n2 in zone a, n3 in zone b, n4
// without labels.
func standard(t testing.TB) *fixture {
	f := newFixture(t, nil)
	f.setNode("n1", map[string]string{"zone1": "a"})
	f.setNode("n2", map[string]string{"zone1": "a"})
	f.setNode("n3", map[string]string{"zone1": "b"})
	f.setNode("n4", map[string]string{})
	f.start()
	return f
}

func list[T any](f *fixture, resource string, into runtime.Object, items func() []T) []T {
	f.t.Helper()
	err := f.stores[resource].GetList(context.Background(), "/"+resource+"/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, into)
	if err != nil {
		f.t.Fatal(err)
	}
	return items()
}

func (f *fixture) listSlices() []discoveryv1.EndpointSlice {
	into := &discoveryv1.EndpointSliceList{}
	return list(f, "endpointslices", into, func() []discoveryv1.EndpointSlice { return into.Items })
}

func (f *fixture) listEndpoints() []corev1.Endpoints {
	into := &corev1.EndpointsList{}
	return list(f, "endpoints", into, func() []corev1.Endpoints { return into.Items })
}

func (f *fixture) listServices() []corev1.Service {
	into := &corev1.ServiceList{}
	return list(f, "services", into, func() []corev1.Service { return into.Items })
}

// slicesView returns the node names of the endpoints of each slice, "-" for an
// endpoint without one.
func (f *fixture) slicesView() map[string][]string {
	seen := map[string][]string{}
	for _, s := range f.listSlices() {
		names := []string{}
		for _, e := range s.Endpoints {
			names = append(names, nodeNameOf(e.NodeName))
		}
		seen[s.Name] = names
	}
	return seen
}

func (f *fixture) endpointsView() map[string][]string {
	seen := map[string][]string{}
	for _, e := range f.listEndpoints() {
		names := []string{}
		for _, subset := range e.Subsets {
			for _, a := range subset.Addresses {
				names = append(names, nodeNameOf(a.NodeName))
			}
		}
		seen[e.Name] = names
	}
	return seen
}

func nodeNameOf(name *string) string {
	if name == nil {
		return "-"
	}
	return *name
}

func newService(name, annotation string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1"}}
	if annotation != "" {
		s.Annotations = map[string]string{topology.TopologyKeysAnnotation: annotation}
	}
	return s
}

// newSlice returns a slice with one endpoint on each of the nodes.
func newSlice(name, service string, nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1"},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if service != "" {
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	for i, node := range nodes {
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", i+1)}}
		if node != "-" {
			e.NodeName = &node
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func newEndpoints(name string, nodes ...string) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1"}}
	var addresses []corev1.EndpointAddress
	for i, node := range nodes {
		a := corev1.EndpointAddress{IP: fmt.Sprintf("10.0.0.%d", i+1)}
		if node != "-" {
			a.NodeName = &node
		}
		addresses = append(addresses, a)
	}
	if len(addresses) > 0 {
		e.Subsets = []corev1.EndpointSubset{{Addresses: addresses}}
	}
	return e
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// recorder is a client: it lists once and then applies what its watch delivers.
type recorder struct {
	t        testing.TB
	resource string
	store    *memory.Store
	watch    watch.Interface
	state    map[string]runtime.Object
	last     uint64
	events   int
}

func (f *fixture) record(resource string) *recorder {
	f.t.Helper()
	r := &recorder{t: f.t, resource: resource, store: f.stores[resource], state: map[string]runtime.Object{}}
	r.last = r.store.Revision()
	w, err := r.store.Watch(f.t.Context(), "/"+resource+"/", storage.ListOptions{
		Recursive: true, Predicate: storage.Everything, ResourceVersion: strconv.FormatUint(r.last, 10),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(w.Stop)
	r.watch = w
	return r
}

// catchUp applies events until the recorder has seen the store's revision, and
// returns their types and names.
func (r *recorder) catchUp() []string {
	r.t.Helper()
	var seen []string
	for target := r.store.Revision(); r.last < target; {
		select {
		case event, ok := <-r.watch.ResultChan():
			if !ok {
				r.t.Fatalf("the watch of %s ended", r.resource)
			}
			seen = append(seen, r.apply(event))
		case <-time.After(10 * time.Second):
			r.t.Fatalf("no event of %s at revision %d, %d expected", r.resource, r.last, target)
		}
	}
	return seen
}

func (r *recorder) apply(event watch.Event) string {
	r.t.Helper()
	obj, ok := event.Object.(metav1.Object)
	if !ok {
		r.t.Fatalf("unexpected event %v", event)
	}
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil || revision <= r.last {
		r.t.Fatalf("%s %s %s has revision %q after %d", event.Type, r.resource, obj.GetName(), obj.GetResourceVersion(), r.last)
	}
	r.last = revision
	r.events++
	_, present := r.state[obj.GetName()]
	switch event.Type {
	case watch.Added:
		if present {
			r.t.Fatalf("%s was added twice", obj.GetName())
		}
		r.state[obj.GetName()] = event.Object
	case watch.Modified:
		if !present {
			r.t.Fatalf("%s was modified before it was added", obj.GetName())
		}
		if viewEqual(r.state[obj.GetName()], event.Object) {
			r.t.Fatalf("%s %s was sent again without a change", r.resource, obj.GetName())
		}
		r.state[obj.GetName()] = event.Object
	case watch.Deleted:
		if !present {
			r.t.Fatalf("%s was deleted before it was added", obj.GetName())
		}
		delete(r.state, obj.GetName())
	default:
		r.t.Fatalf("unexpected event %v", event)
	}
	return string(event.Type) + " " + obj.GetName()
}

func viewEqual(a, b runtime.Object) bool {
	switch a := a.(type) {
	case *corev1.Service:
		return servicesEqual(a, b.(*corev1.Service))
	case *discoveryv1.EndpointSlice:
		return slicesEqual(a, b.(*discoveryv1.EndpointSlice))
	case *corev1.Endpoints:
		return endpointsEqual(a, b.(*corev1.Endpoints))
	}
	return false
}
