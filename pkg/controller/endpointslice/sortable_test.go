// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestSortableIsNotTheCachesOwn(t *testing.T) {
	cached := &discoveryv1.EndpointSlice{
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(2))}, {Port: new(int32(1))}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}},
			{Addresses: []string{"10.0.0.3", "10.0.0.2"}},
			{Addresses: []string{"10.0.0.5", "10.0.0.4"}},
		},
	}
	before := cached.DeepCopy()
	slice := sortable(cached)
	if diff := cmp.Diff(cached, slice); diff != "" {
		t.Errorf("not equal to the cached one:\n%s", diff)
	}
	slices.Reverse(slice.Ports)
	for i := range slice.Endpoints {
		slices.Sort(slice.Endpoints[i].Addresses)
	}
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("the cache has changed:\n%s", diff)
	}
}
