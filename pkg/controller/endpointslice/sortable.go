// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// sortable returns a slice equal to the cache's whose ports, and addresses of
// each endpoint, can be sorted without writing into the cache. All else is
// shared.
func sortable(cached *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice := *cached
	slice.Ports = slices.Clone(cached.Ports)
	for i := range cached.Endpoints {
		if len(cached.Endpoints[i].Addresses) < 2 {
			continue
		}
		if &slice.Endpoints[0] == &cached.Endpoints[0] {
			slice.Endpoints = slices.Clone(cached.Endpoints)
		}
		slice.Endpoints[i].Addresses = slices.Clone(cached.Endpoints[i].Addresses)
	}
	return &slice
}
