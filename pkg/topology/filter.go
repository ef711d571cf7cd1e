// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// ServiceName returns the name of the Service that a slice belongs to. That is
// what its label says, never a part of its own name; without the label it belongs
// to no Service, is not filtered, and the result is false.
func ServiceName(in *discoveryv1.EndpointSlice) (string, bool) {
	name := in.Labels[discoveryv1.LabelServiceName]
	return name, name != ""
}

// Slice returns the slice as this node sees it. If nothing is removed that is in
// itself. Otherwise it is a shallow copy whose Endpoints are a new list, never
// nil, of the endpoints that stay, unchanged and in their order. in is never
// changed.
//
// The slice must be one of those that Select was given: in mode Ordered, an
// address type without a decision has no matching key and so no endpoints.
func (s Selection) Slice(loc Locality, in *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	if !s.policy.Filters() {
		return in
	}
	keys, _ := s.Keys(in.AddressType)
	endpoints, changed := keep(in.Endpoints, func(endpoint *discoveryv1.Endpoint) bool {
		return firstMatch(keys, loc, endpoint) < len(keys)
	})
	if !changed {
		return in
	}
	if endpoints == nil {
		// The field is required: clients must read [], not null.
		endpoints = []discoveryv1.Endpoint{}
	}
	out := *in
	out.Endpoints = endpoints
	return &out
}

// Endpoints returns the Endpoints object of the Service as this node sees it. If
// nothing is removed that is in itself. Otherwise it is a shallow copy with a new
// list of subsets; a subset that loses all its addresses goes, since one without
// addresses is invalid, and Subsets is nil if none is left. in is never changed.
//
// family is the address type of the primary family of the Service: in mode
// Ordered the decision of its slices holds here too, and if there are none, see
// SelectEndpoints. Addresses of Endpoints have no zone, so only their node counts.
func (s Selection) Endpoints(loc Locality, family discoveryv1.AddressType, in *corev1.Endpoints) *corev1.Endpoints {
	if !s.policy.Filters() {
		return in
	}
	keys, decided := s.Keys(family)
	if !decided {
		keys = SelectEndpoints(s.policy, loc, in)
	}
	stays := func(address *corev1.EndpointAddress) bool {
		return firstMatchNode(keys, loc, address.NodeName) < len(keys)
	}

	var subsets []corev1.EndpointSubset
	changed := false
	for i := range in.Subsets {
		subset := in.Subsets[i]
		ready, lostReady := keep(subset.Addresses, stays)
		notReady, lostNotReady := keep(subset.NotReadyAddresses, stays)
		lost := lostReady || lostNotReady
		if lost && !changed {
			changed = true
			subsets = append(subsets, in.Subsets[:i]...)
		}
		if lost && len(ready)+len(notReady) == 0 {
			continue
		}
		if changed {
			subset.Addresses, subset.NotReadyAddresses = ready, notReady
			subsets = append(subsets, subset)
		}
	}
	if !changed {
		return in
	}
	out := *in
	out.Subsets = subsets
	return &out
}

// keep returns the elements of in for which stays is true. If that is all of
// them it returns in itself and false; if it is none of them, nil and true. It
// asks for each element once, and allocates only what it returns, to size: the
// result lives as long as the view does.
func keep[T any](in []T, stays func(*T) bool) ([]T, bool) {
	// An EndpointSlice has at most 1000 endpoints and an Endpoints object of the
	// stock controller 1000 addresses: 1024 bits, which stay on the stack.
	const word = 64
	var buffer [1024 / word]uint64
	kept := buffer[:]
	if len(in) > len(buffer)*word {
		kept = make([]uint64, (len(in)+word-1)/word)
	}
	n := 0
	for i := range in {
		if stays(&in[i]) {
			kept[i/word] |= 1 << (i % word)
			n++
		}
	}
	switch n {
	case len(in):
		return in, false
	case 0:
		return nil, true
	}
	out := make([]T, 0, n)
	for i := range in {
		if kept[i/word]&(1<<(i%word)) != 0 {
			out = append(out, in[i])
		}
	}
	return out, true
}
