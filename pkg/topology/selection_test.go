// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func sliceOn(addressType discoveryv1.AddressType, nodes ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: addressType}
	for _, node := range nodes {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"on " + node}, NodeName: &node})
	}
	return slice
}

func TestSelectionKeys(t *testing.T) {
	slices := []*discoveryv1.EndpointSlice{sliceOn(discoveryv1.AddressTypeIPv4, "n2"), sliceOn(discoveryv1.AddressTypeIPv6, "n3")}
	keys := []string{"kubernetes.io/hostname", "zone1"}
	tests := []struct {
		name        string
		policy      Policy
		addressType discoveryv1.AddressType
		want        []string
		wantOK      bool
	}{
		{"not filtered", Policy{}, discoveryv1.AddressTypeIPv4, nil, false},
		{"union", Policy{Union, keys}, discoveryv1.AddressTypeIPv4, keys, true},
		{"union, a type without slices", Policy{Union, keys}, discoveryv1.AddressTypeFQDN, keys, true},
		{"ordered", Policy{Ordered, keys}, discoveryv1.AddressTypeIPv4, []string{"zone1"}, true},
		{"ordered, no key matches", Policy{Ordered, keys}, discoveryv1.AddressTypeIPv6, []string{}, true},
		{"ordered, a type without slices", Policy{Ordered, keys}, discoveryv1.AddressTypeFQDN, nil, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := Select(tc.policy, unitCluster(), slices).Keys(tc.addressType)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.wantOK {
				t.Errorf("ok %t, keys (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestSelectionEqual(t *testing.T) {
	loc := unitCluster()
	keys := []string{"kubernetes.io/hostname", "zone1"}
	own, unit, elsewhere := sliceOn(discoveryv1.AddressTypeIPv4, "n1"), sliceOn(discoveryv1.AddressTypeIPv4, "n2"), sliceOn(discoveryv1.AddressTypeIPv4, "n3")
	selection := func(mode Mode, slices ...*discoveryv1.EndpointSlice) Selection {
		return Select(Policy{Mode: mode, Keys: keys}, loc, slices)
	}
	tests := []struct {
		name string
		a, b Selection
		want bool
	}{
		{"zero values", Selection{}, Select(Policy{}, loc, nil), true},
		{"filtered and not", Selection{}, selection(Union), false},
		{"union does not depend on slices", selection(Union, own), selection(Union, elsewhere), true},
		{"ordered, same key", selection(Ordered, own), selection(Ordered, unit, own), true},
		{"ordered, other key", selection(Ordered, own), selection(Ordered, unit), false},
		{"ordered, no key", selection(Ordered, unit), selection(Ordered, elsewhere), false},
		{"no key is not the absence of slices", selection(Ordered, elsewhere), selection(Ordered), false},
		{"modes", selection(Union), selection(Ordered), false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.a.Equal(tc.b); got != tc.want {
				t.Errorf("a.Equal(b) = %t", got)
			}
			if got := tc.b.Equal(tc.a); got != tc.want {
				t.Errorf("b.Equal(a) = %t", got)
			}
		})
	}
}

// TestNodeUnitsAreDisjoint looks at one slice from every node.
func TestNodeUnitsAreDisjoint(t *testing.T) {
	want := map[string][]string{"n1": {"on n1", "on n2"}, "n2": {"on n1", "on n2"}, "n3": {"on n3"}, "n4": {}}
	slice := sliceOn(discoveryv1.AddressTypeIPv4, "n1", "n2", "n3", "n4")
	for node, wantAddresses := range want {
		t.Run(node, func(t *testing.T) {
			loc := unitCluster().onNode(node)
			s := Select(Policy{Mode: Union, Keys: []string{"zone1"}}, loc, nil)
			got := []string{}
			for _, endpoint := range s.Slice(loc, slice).Endpoints {
				got = append(got, endpoint.Addresses...)
			}
			if diff := cmp.Diff(wantAddresses, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyObjectsStayAsUpstreamSendsThem(t *testing.T) {
	loc := unitCluster()
	for _, mode := range []Mode{Union, Ordered} {
		s := Select(Policy{Mode: mode, Keys: []string{"zone1"}}, loc, nil)
		for _, slice := range []*discoveryv1.EndpointSlice{
			{AddressType: discoveryv1.AddressTypeIPv4},
			{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}},
		} {
			if got := s.Slice(loc, slice); got != slice {
				t.Errorf("%s: slice with endpoints %#v became %v", mode, slice.Endpoints, got)
			}
		}
		endpoints := &corev1.Endpoints{}
		if got := s.Endpoints(loc, discoveryv1.AddressTypeIPv4, endpoints); got != endpoints {
			t.Errorf("%s: endpoints became %v", mode, got)
		}
	}
}

// TestMoreEndpointsThanTheAPIAllows covers the part of keep that needs the heap.
func TestMoreEndpointsThanTheAPIAllows(t *testing.T) {
	loc := unitCluster()
	nodes := make([]string, 0, 2500)
	for i := range cap(nodes) {
		nodes = append(nodes, []string{"n1", "n3", "n3", "n2", "n4"}[i%5])
	}
	slice := sliceOn(discoveryv1.AddressTypeIPv4, nodes...)
	got := Select(Policy{Mode: Union, Keys: []string{"zone1"}}, loc, nil).Slice(loc, slice)
	if len(got.Endpoints) != 1000 {
		t.Fatalf("%d endpoints, want 1000", len(got.Endpoints))
	}
	for i, endpoint := range got.Endpoints {
		if want := []string{"n1", "n2"}[i%2]; *endpoint.NodeName != want {
			t.Fatalf("endpoint %d is on %s, want %s", i, *endpoint.NodeName, want)
		}
	}
}
