// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// benchSize is a cluster: nodes in ten units, Services of one slice each, four
// of five closed over their unit, and the number of endpoints in a slice.
type benchSize struct{ nodes, services, endpoints int }

// benchSizes has the last one for comparison with the first: what one slice or
// Service costs must not depend on how many others there are.
var benchSizes = []benchSize{{100, 1_000, 10}, {500, 5_000, 20}, {500, 5_000, 10}}

func (s benchSize) String() string { return fmt.Sprintf("%dx%dx%d", s.nodes, s.services, s.endpoints) }

const (
	benchKeys  = `["zone1"]`
	benchUnits = 10
)

func benchNode(i int) string { return fmt.Sprintf("node-%03d", i) }
func benchUnit(i int) string { return fmt.Sprintf("unit-%d", i%benchUnits) }

// unit returns the names of the nodes of one unit.
func (s benchSize) unit(i int) []string {
	var names []string
	for ; i < s.nodes; i += benchUnits {
		names = append(names, benchNode(i))
	}
	return names
}

func (s benchSize) service(i int) *corev1.Service {
	keys := benchKeys
	if i%5 == 4 {
		keys = ""
	}
	service := newService(fmt.Sprintf("service-%04d", i), keys)
	service.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"},
		Selector: map[string]string{"app": service.Name},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
	}
	return service
}

// slice returns the slice of service i; its endpoints are on the nodes i, i+1
// and so on.
func (s benchSize) slice(i int) *discoveryv1.EndpointSlice {
	service := fmt.Sprintf("service-%04d", i)
	var nodes []string
	for k := range s.endpoints {
		nodes = append(nodes, benchNode((i+k)%s.nodes))
	}
	slice := newSlice(service+"-abcde", service, nodes...)
	for k := range slice.Endpoints {
		ready, serving, terminating := true, true, false
		slice.Endpoints[k].Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
		slice.Endpoints[k].TargetRef = &corev1.ObjectReference{
			Kind: "Pod", Namespace: slice.Namespace, Name: fmt.Sprintf("%s-%d", service, k), UID: types.UID(fmt.Sprint(i, k)),
		}
	}
	return slice
}

func (s benchSize) objects() ([]*corev1.Service, []*discoveryv1.EndpointSlice) {
	var services []*corev1.Service
	var slices []*discoveryv1.EndpointSlice
	for i := range s.services {
		services, slices = append(services, s.service(i)), append(slices, s.slice(i))
	}
	return services, slices
}

// closedSlicesOn returns how many slices of closed Services have an endpoint on
// a node.
func (s benchSize) closedSlicesOn(node string) int {
	count := 0
	for i := range s.services {
		if i%5 != 4 && slices.ContainsFunc(s.slice(i).Endpoints, func(e discoveryv1.Endpoint) bool { return *e.NodeName == node }) {
			count++
		}
	}
	return count
}

// benchView is the view of the first node over its stores.
type benchView struct {
	*View
	size    benchSize
	domains *fakeDomains
	stores  map[string]*memory.Store
}

// newBenchView returns a view that has seen nothing yet.
func newBenchView(b *testing.B, size benchSize) *benchView {
	b.Helper()
	v := &benchView{size: size, domains: &fakeDomains{}, stores: map[string]*memory.Store{}}
	revisions := NewRevisions(b.Context(), &memoryFloor{}, time.Now())
	for resource, example := range map[string][2]runtime.Object{
		"services":       {&corev1.Service{}, &corev1.ServiceList{}},
		"endpoints":      {&corev1.Endpoints{}, &corev1.EndpointsList{}},
		"endpointslices": {&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}},
		"nodes":          {&corev1.Node{}, &corev1.NodeList{}},
	} {
		store, err := memory.New(memory.Config{
			ResourcePrefix: "/" + resource, NewFunc: example[0].DeepCopyObject, NewListFunc: example[1].DeepCopyObject,
			InitialRevision: revisions.Start(),
		})
		if err != nil {
			b.Fatal(err)
		}
		v.stores[resource] = store
	}
	v.View = NewView(klog.NewContext(b.Context(), klog.New(nil)), ViewConfig{
		NodeName: benchNode(0), Services: v.stores["services"], EndpointSlices: v.stores["endpointslices"], Endpoints: v.stores["endpoints"],
		Revisions: revisions, Domains: v.domains,
	})
	return v
}

func (v *benchView) stop() {
	for _, store := range v.stores {
		store.Stop()
	}
}

// labelOwn moves the own Node to a unit, and syncs the domain that is asked for.
func (v *benchView) labelOwn(unit int) {
	v.SetOwnLabels(map[string]string{"zone1": benchUnit(unit)})
	v.domain().Replace(v.size.unit(unit % benchUnits))
}

// domain is the last domain that the view has asked for.
func (v *benchView) domain() DomainSink {
	v.domains.watches = v.domains.watches[len(v.domains.watches)-1:]
	return v.domains.watches[0].sink
}

// fill tells all objects, after which the view is complete.
func (v *benchView) fill(services []*corev1.Service, slices []*discoveryv1.EndpointSlice) {
	v.SetKubernetesAnnotations(nil)
	v.ReplaceServices(services)
	v.ReplaceEndpointSlices(slices)
	v.labelOwn(0)
}

func (v *benchView) revision(resource string) uint64 { return v.stores[resource].Revision() }

// BenchmarkFirstSync measures the way from the first lists to the complete view.
func BenchmarkFirstSync(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.String(), func(b *testing.B) {
			services, slices := size.objects()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				v := newBenchView(b, size)
				before := v.revision("endpointslices")
				b.StartTimer()
				v.fill(services, slices)
				b.StopTimer()
				if got := v.revision("endpointslices") - before; got != uint64(size.services) {
					b.Fatalf("the view has %d slices", got)
				}
				v.stop()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkEvent measures one event of upstream, to the end: what it changes is
// in the stores. How many objects it changes is checked.
func BenchmarkEvent(b *testing.B) {
	none := func(benchSize) int { return 0 }
	one := func(benchSize) int { return 1 }
	for _, event := range []struct {
		name             string
		slices, services func(benchSize) int
		// prepare returns what makes the i-th event, counted from 1.
		prepare func(*benchView) func(i int)
	}{
		{"slice of the own unit", one, none, sliceEvents(0)},
		{"slice of another unit", none, none, sliceEvents(1)},
		{"service annotated", none, one, serviceEvents("note", "a", "b")},
		{"service opened and closed", one, one, serviceEvents(topology.TopologyKeysAnnotation, benchKeys, "")},
		{"heartbeat of the own node", none, none, heartbeats},
		{"node enters or leaves the unit", func(s benchSize) int { return s.closedSlicesOn(benchNode(1)) }, none, nodeEvents},
		{"own node changes its unit", func(s benchSize) int { return s.services / 5 * 4 }, none, func(v *benchView) func(int) { return v.labelOwn }},
	} {
		for _, size := range benchSizes {
			b.Run(strings.ReplaceAll(event.name, " ", "-")+"/"+size.String(), func(b *testing.B) {
				v := newBenchView(b, size)
				defer v.stop()
				v.fill(size.objects())
				next := event.prepare(v)
				slicesBefore, servicesBefore := v.revision("endpointslices"), v.revision("services")
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					next(i)
				}
				changed := func(resource string, before uint64, want int) {
					if got := v.revision(resource) - before; got != uint64(i*want) {
						b.Errorf("%d events have changed %d %s, want %d each", i, got, resource, want)
					}
				}
				changed("endpointslices", slicesBefore, event.slices(size))
				changed("services", servicesBefore, event.services(size))
				b.ReportMetric(float64(event.slices(size)+event.services(size)), "changes/op")
			})
		}
	}
}

// sliceEvents has the endpoint k of the first slice become ready and unready;
// it is on node k. As from upstream, no two objects share anything.
func sliceEvents(k int) func(*benchView) func(int) {
	return func(v *benchView) func(int) {
		var variants [2]*discoveryv1.EndpointSlice
		for i := range variants {
			ready := i == 0
			variants[i] = v.size.slice(0)
			variants[i].ResourceVersion = strconv.Itoa(i + 2)
			variants[i].Endpoints[k].Conditions.Ready = &ready
		}
		return func(i int) { v.SetEndpointSlice(variants[i%2]) }
	}
}

// serviceEvents has an annotation of the first Service change between two
// values, of which the empty one is none.
func serviceEvents(annotation, even, odd string) func(*benchView) func(int) {
	return func(v *benchView) func(int) {
		var variants [2]*corev1.Service
		for i, value := range []string{even, odd} {
			variants[i] = v.size.service(0)
			variants[i].ResourceVersion = strconv.Itoa(i + 2)
			delete(variants[i].Annotations, annotation)
			if value != "" {
				variants[i].Annotations[annotation] = value
			}
		}
		return func(i int) { v.SetService(variants[i%2]) }
	}
}

// heartbeats are what the feed does with them: the mirror has every one.
func heartbeats(v *benchView) func(int) {
	mirror := NewMirror(context.Background(), "nodes", v.stores["nodes"])
	labels := map[string]string{"zone1": benchUnit(0)}
	mirror.Replace(nil, "1")
	return func(i int) {
		mirror.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: benchNode(0), Labels: labels, ResourceVersion: strconv.Itoa(i + 1)}})
		v.SetOwnLabels(labels)
	}
}

func nodeEvents(v *benchView) func(int) {
	domain := v.domain()
	return func(i int) {
		if i%2 == 1 {
			domain.Add(benchNode(1))
		} else {
			domain.Delete(benchNode(1))
		}
	}
}
