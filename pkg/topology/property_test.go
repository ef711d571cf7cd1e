// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scenario is a random cluster with one Service in it.
type scenario struct {
	loc       cluster
	policy    Policy
	slices    []*discoveryv1.EndpointSlice
	endpoints *corev1.Endpoints
	family    discoveryv1.AddressType
}

// newScenario makes everything small, so that all kinds of matches are frequent.
func newScenario(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	keys := []string{"a", "b", corev1.LabelTopologyZone, AnyKey}
	values := []string{"", "x", "y"}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	maybe := func() *bool {
		switch r.IntN(3) {
		case 0:
			return nil
		case 1:
			return new(true)
		default:
			return new(false)
		}
	}
	nodeName := func() *string {
		// "n0" to "n3" are in the cluster, "n4" is unknown.
		switch n := r.IntN(8); n {
		case 5:
			return new("")
		case 6, 7:
			return nil
		default:
			return new(fmt.Sprintf("n%d", n))
		}
	}

	sc := scenario{loc: cluster{self: "n0", nodes: map[string]map[string]string{}}}
	for i := range 4 {
		labels := map[string]string{}
		for _, key := range keys[:3] {
			if r.IntN(3) > 0 {
				labels[key] = pick(values)
			}
		}
		sc.loc.nodes[fmt.Sprintf("n%d", i)] = labels
	}
	for range r.IntN(4) {
		sc.policy.Keys = append(sc.policy.Keys, keys[r.IntN(6)%4])
	}
	sc.policy.Mode = []Mode{Union, Ordered}[r.IntN(2)]
	types := []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN}
	sc.family = types[r.IntN(2)]
	for i := range r.IntN(5) {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", i)}, AddressType: types[r.IntN(3)]}
		for j := range r.IntN(5) {
			endpoint := discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf("%d-%d", i, j)},
				Conditions: discoveryv1.EndpointConditions{Ready: maybe(), Serving: maybe(), Terminating: maybe()},
				NodeName:   nodeName(),
			}
			if r.IntN(2) == 0 {
				endpoint.Zone = new(pick(values))
			}
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		sc.slices = append(sc.slices, slice)
	}
	sc.endpoints = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	for i := range r.IntN(4) {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: int32(i + 1)}}}
		for j := range r.IntN(4) {
			address := corev1.EndpointAddress{IP: fmt.Sprintf("%d-%d", i, j), NodeName: nodeName()}
			if r.IntN(2) == 0 {
				subset.Addresses = append(subset.Addresses, address)
			} else {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
			}
		}
		sc.endpoints.Subsets = append(sc.endpoints.Subsets, subset)
	}
	return sc
}

// matchesByDefinition says whether an endpoint matches a key, from labels alone.
func (sc scenario) matchesByDefinition(key string, nodeName, zone *string) bool {
	own, ok := sc.loc.nodes[sc.loc.self][key]
	switch {
	case key == AnyKey:
		return true
	case !ok:
		return false
	case nodeName == nil || *nodeName == "":
		return key == corev1.LabelTopologyZone && zone != nil && *zone != "" && *zone == own
	}
	value, ok := sc.loc.nodes[*nodeName][key]
	return ok && value == own
}

// keysByDefinition returns the keys that filter an address type, one pass over
// all slices for each key and kind of endpoint.
func (sc scenario) keysByDefinition(addressType discoveryv1.AddressType) (keys []string, anySlice bool) {
	if sc.policy.Mode == Union {
		return sc.policy.Keys, true
	}
	for _, slice := range sc.slices {
		anySlice = anySlice || slice.AddressType == addressType
	}
	for _, terminating := range []bool{false, true} {
		for _, key := range sc.policy.Keys {
			for _, slice := range sc.slices {
				for _, endpoint := range slice.Endpoints {
					c := endpoint.Conditions
					decides := c.Ready == nil || *c.Ready
					if terminating {
						decides = (c.Serving == nil || *c.Serving) && c.Terminating != nil && *c.Terminating
					}
					if slice.AddressType == addressType && decides && sc.matchesByDefinition(key, endpoint.NodeName, endpoint.Zone) {
						return []string{key}, true
					}
				}
			}
		}
	}
	return nil, anySlice
}

func (sc scenario) sliceByDefinition(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := slice.DeepCopy()
	keys, _ := sc.keysByDefinition(slice.AddressType)
	out.Endpoints = nil
	for _, endpoint := range slice.Endpoints {
		for _, key := range keys {
			if sc.matchesByDefinition(key, endpoint.NodeName, endpoint.Zone) {
				out.Endpoints = append(out.Endpoints, endpoint)
				break
			}
		}
	}
	if out.Endpoints == nil && slice.Endpoints != nil {
		out.Endpoints = []discoveryv1.Endpoint{}
	}
	return out
}

func (sc scenario) endpointsByDefinition() *corev1.Endpoints {
	keys, decided := sc.keysByDefinition(sc.family)
	if !decided {
	search:
		for _, key := range sc.policy.Keys {
			for _, subset := range sc.endpoints.Subsets {
				for _, address := range subset.Addresses {
					if sc.matchesByDefinition(key, address.NodeName, nil) {
						keys = []string{key}
						break search
					}
				}
			}
		}
	}
	filter := func(addresses []corev1.EndpointAddress) []corev1.EndpointAddress {
		var out []corev1.EndpointAddress
		for _, address := range addresses {
			for _, key := range keys {
				if sc.matchesByDefinition(key, address.NodeName, nil) {
					out = append(out, address)
					break
				}
			}
		}
		return out
	}
	out := sc.endpoints.DeepCopy()
	out.Subsets = nil
	for _, subset := range sc.endpoints.Subsets {
		before := len(subset.Addresses) + len(subset.NotReadyAddresses)
		subset.Addresses, subset.NotReadyAddresses = filter(subset.Addresses), filter(subset.NotReadyAddresses)
		if before == 0 || len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			out.Subsets = append(out.Subsets, subset)
		}
	}
	return out
}

// check compares the package with the definition and tests what it promises
// about its results.
func (sc scenario) check(t *testing.T) {
	t.Helper()
	before := scenario{endpoints: sc.endpoints.DeepCopy()}
	for _, slice := range sc.slices {
		before.slices = append(before.slices, slice.DeepCopy())
	}

	selection := Select(sc.policy, sc.loc, sc.slices)
	reversed := make([]*discoveryv1.EndpointSlice, 0, len(sc.slices))
	for _, slice := range sc.slices {
		reversed = append([]*discoveryv1.EndpointSlice{slice}, reversed...)
	}
	if other := Select(sc.policy, sc.loc, reversed); !selection.Equal(other) {
		t.Errorf("the order of the slices matters: %v, %v", selection, other)
	}

	for _, slice := range sc.slices {
		got, want := selection.Slice(sc.loc, slice), slice
		if sc.policy.Filters() {
			want = sc.sliceByDefinition(slice)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("slice %s (-want +got):\n%s", slice.Name, diff)
		}
		if removed := len(slice.Endpoints) - len(got.Endpoints); removed == 0 && got != slice {
			t.Errorf("slice %s: copied though nothing is removed", slice.Name)
		} else if removed > 0 && cap(got.Endpoints) != len(got.Endpoints) {
			t.Errorf("slice %s: %d endpoints in a list of capacity %d", slice.Name, len(got.Endpoints), cap(got.Endpoints))
		}
		if again := selection.Slice(sc.loc, got); again != got {
			t.Errorf("slice %s: filtering what was filtered removes more", slice.Name)
		}
	}

	got, want := selection.Endpoints(sc.loc, sc.family, sc.endpoints), sc.endpoints
	if sc.policy.Filters() {
		want = sc.endpointsByDefinition()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if cmp.Equal(got, sc.endpoints) && got != sc.endpoints {
		t.Error("endpoints: copied though nothing is removed")
	}

	if diff := cmp.Diff(before.slices, sc.slices); diff != "" {
		t.Errorf("slices were changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.endpoints, sc.endpoints); diff != "" {
		t.Errorf("endpoints were changed (-before +after):\n%s", diff)
	}
}

func TestSelectionAgreesWithDefinition(t *testing.T) {
	for seed := range uint64(5000) {
		newScenario(seed).check(t)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, newScenario(seed).policy)
		}
	}
}

func FuzzSelection(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) {
		newScenario(seed).check(t)
	})
}
