// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Locality is what selection knows about nodes: the labels of this node, and the
// nodes that share them. The answers must not change during a call of this
// package.
type Locality interface {
	// Label returns the value that this node carries for a label key.
	Label(key string) (value string, ok bool)
	// Member reports whether the node of that name carries the key with the value
	// that this node has. It is false for every node, this one included, if this
	// node lacks the key, and for a node that is not known.
	Member(key, nodeName string) bool
}

// Selection is the decision for one Service: by which keys its endpoints are
// filtered. In mode Union these are the keys of the policy. In mode Ordered it is
// one key, or none, for each address type. The zero value filters nothing. A
// Selection is immutable.
type Selection struct {
	policy Policy
	// decisions are those of mode Ordered: one for each address type that has
	// slices, sorted by address type.
	decisions []decision
}

// decision is the key that filters the endpoints of one address type.
type decision struct {
	addressType discoveryv1.AddressType
	// key is an index of Policy.Keys; len(Policy.Keys) says that no key decides.
	key int
}

// Select decides by which keys the endpoints of a Service are filtered.
//
// endpointSlices are all slices of the Service, in any order; only mode Ordered
// looks at them, and it decides for each address type over all slices of that
// type together. The first key under which a ready endpoint matches decides. If
// there is none, it is the first key under which a serving and terminating
// endpoint matches, because that is what kube-proxy then falls back to. If there
// is none either, nothing is selected. Conditions that are not set have the
// defaults of the API: ready, serving, not terminating.
func Select(p Policy, loc Locality, endpointSlices []*discoveryv1.EndpointSlice) Selection {
	if !p.Filters() {
		return Selection{}
	}
	s := Selection{policy: p}
	if !p.ordered() {
		return s
	}
	for _, slice := range endpointSlices {
		i, found := s.find(slice.AddressType)
		if found {
			continue
		}
		s.decisions = slices.Insert(s.decisions, i, decision{
			addressType: slice.AddressType,
			key:         firstKey(p.Keys, loc, endpointSlices, slice.AddressType),
		})
	}
	return s
}

// firstKey returns the index of the key that decides for an address type, or
// len(keys).
func firstKey(keys []string, loc Locality, endpointSlices []*discoveryv1.EndpointSlice, addressType discoveryv1.AddressType) int {
	ready, terminating := len(keys), len(keys)
	for _, slice := range endpointSlices {
		if slice.AddressType != addressType {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			// Only a key before the best one so far can change the result.
			switch c := &endpoint.Conditions; {
			case isTrue(c.Ready, true):
				ready = firstMatch(keys[:ready], loc, endpoint)
			case isTrue(c.Serving, true) && isTrue(c.Terminating, false):
				terminating = firstMatch(keys[:terminating], loc, endpoint)
			}
			if ready == 0 {
				return 0
			}
		}
	}
	if ready < len(keys) {
		return ready
	}
	return terminating
}

// isTrue reads a condition that may be absent.
func isTrue(condition *bool, absent bool) bool {
	if condition == nil {
		return absent
	}
	return *condition
}

// SelectEndpoints returns the keys that filter an Endpoints object whose Service
// has no EndpointSlice that could decide for it, such as one made by hand that is
// not (or not yet) mirrored. In mode Union these are the keys of the policy. In
// mode Ordered it is the first key that matches one of its ready addresses, or
// nothing; not-ready addresses do not decide, since Endpoints does not tell which
// of them are serving. Selection.Endpoints calls it where needed.
func SelectEndpoints(p Policy, loc Locality, in *corev1.Endpoints) []string {
	if !p.ordered() {
		return p.Keys
	}
	first := len(p.Keys)
	for i := range in.Subsets {
		addresses := in.Subsets[i].Addresses
		for j := range addresses {
			first = firstMatchNode(p.Keys[:first], loc, addresses[j].NodeName)
		}
	}
	return keyAt(p.Keys, first)
}

// Keys returns the keys by which the endpoints of an address type are filtered:
// an endpoint that matches one of them stays. It returns false if there is no
// decision for that type: the Service is not filtered at all, or it is in mode
// Ordered and had no slice of that type. The result must not be changed.
func (s Selection) Keys(addressType discoveryv1.AddressType) ([]string, bool) {
	if !s.policy.ordered() {
		return s.policy.Keys, s.policy.Filters()
	}
	i, found := s.find(addressType)
	if !found {
		return nil, false
	}
	return keyAt(s.policy.Keys, s.decisions[i].key), true
}

// Equal reports whether two selections were made by equal policies and came to
// the same decision. For the same Locality they then filter every object alike.
func (s Selection) Equal(o Selection) bool {
	return s.policy.Equal(o.policy) && slices.Equal(s.decisions, o.decisions)
}

// find returns the position of the decision for an address type, or where it
// belongs.
func (s Selection) find(addressType discoveryv1.AddressType) (int, bool) {
	return slices.BinarySearchFunc(s.decisions, addressType, func(d decision, t discoveryv1.AddressType) int {
		return strings.Compare(string(d.addressType), string(t))
	})
}

// keyAt returns the key at an index as a list, without allocating, or the empty
// list for len(keys).
func keyAt(keys []string, i int) []string {
	return keys[i:min(i+1, len(keys)):len(keys)]
}
