// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// domains is a Locality of the kind that a server has: sets of names.
type domains struct {
	labels  map[string]string
	members map[string]map[string]struct{}
}

func (d *domains) Label(key string) (string, bool) {
	value, ok := d.labels[key]
	return value, ok
}

func (d *domains) Member(key, nodeName string) bool {
	_, ok := d.members[key][nodeName]
	return ok
}

// newDomains has the nodes "node-000", "node-001" and so on in the unit of this
// node, as many as asked for.
func newDomains(inUnit int) *domains {
	d := &domains{
		labels:  map[string]string{"zone1": "a"},
		members: map[string]map[string]struct{}{"zone1": {}},
	}
	for i := range inUnit {
		d.members["zone1"][fmt.Sprintf("node-%03d", i)] = struct{}{}
	}
	return d
}

// benchmarkSlice has 100 endpoints on as many nodes.
func benchmarkSlice() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range 100 {
		node := fmt.Sprintf("node-%03d", i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, NodeName: &node})
	}
	return slice
}

func benchmarkEndpoints() *corev1.Endpoints {
	var subset corev1.EndpointSubset
	for _, endpoint := range benchmarkSlice().Endpoints {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: endpoint.Addresses[0], NodeName: endpoint.NodeName})
	}
	return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{subset}}
}

func TestNothingRemovedAllocatesNothing(t *testing.T) {
	loc, slice, endpoints := newDomains(100), benchmarkSlice(), benchmarkEndpoints()
	for _, mode := range []Mode{Union, Ordered} {
		p := Policy{Mode: mode, Keys: []string{"absent", "zone1"}}
		slices := []*discoveryv1.EndpointSlice{slice}
		s := Select(p, loc, slices)
		// The second selection decides from the Endpoints object.
		s2 := Select(p, loc, nil)
		for name, call := range map[string]func(){
			"Slice":                    func() { s.Slice(loc, slice) },
			"Endpoints":                func() { s.Endpoints(loc, slice.AddressType, endpoints) },
			"Endpoints without slices": func() { s2.Endpoints(loc, slice.AddressType, endpoints) },
		} {
			if n := testing.AllocsPerRun(10, call); n != 0 {
				t.Errorf("%s, %s: %v allocations", mode, name, n)
			}
		}
	}
}

func BenchmarkSlice(b *testing.B) {
	slice := benchmarkSlice()
	one, three := []string{"zone1"}, []string{"absent", "other", "zone1"}
	for _, bc := range []struct {
		name   string
		policy Policy
		inUnit int
	}{
		{"unfiltered", Policy{}, 50},
		{"any", Policy{Mode: Union, Keys: []string{AnyKey}}, 50},
		{"union/1key/all", Policy{Mode: Union, Keys: one}, 100},
		{"union/1key/half", Policy{Mode: Union, Keys: one}, 50},
		{"union/1key/none", Policy{Mode: Union, Keys: one}, 0},
		{"union/3keys/half", Policy{Mode: Union, Keys: three}, 50},
		{"ordered/3keys/half", Policy{Mode: Ordered, Keys: three}, 50},
	} {
		b.Run(bc.name, func(b *testing.B) {
			loc := newDomains(bc.inUnit)
			s := Select(bc.policy, loc, []*discoveryv1.EndpointSlice{slice})
			b.ReportAllocs()
			for b.Loop() {
				s.Slice(loc, slice)
			}
		})
	}
}

func BenchmarkSelectOrdered(b *testing.B) {
	slices := []*discoveryv1.EndpointSlice{benchmarkSlice(), benchmarkSlice()}
	for _, bc := range []struct {
		name   string
		inUnit int
	}{{"lastKey", 50}, {"noKey", 0}} {
		b.Run(bc.name, func(b *testing.B) {
			loc := newDomains(bc.inUnit)
			p := Policy{Mode: Ordered, Keys: []string{"absent", "other", "zone1"}}
			b.ReportAllocs()
			for b.Loop() {
				Select(p, loc, slices)
			}
		})
	}
}

func BenchmarkEndpoints(b *testing.B) {
	endpoints, loc := benchmarkEndpoints(), newDomains(50)
	s := Select(Policy{Mode: Union, Keys: []string{"zone1"}}, loc, nil)
	b.ReportAllocs()
	for b.Loop() {
		s.Endpoints(loc, discoveryv1.AddressTypeIPv4, endpoints)
	}
}
