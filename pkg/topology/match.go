// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// firstMatch returns the index of the first key that an endpoint matches, or
// len(keys).
func firstMatch(keys []string, loc Locality, endpoint *discoveryv1.Endpoint) int {
	if endpoint.NodeName != nil && *endpoint.NodeName != "" {
		return firstMatchNode(keys, loc, endpoint.NodeName)
	}
	for i, key := range keys {
		if key == AnyKey || key == corev1.LabelTopologyZone && inZone(loc, endpoint.Zone) {
			return i
		}
	}
	return len(keys)
}

// firstMatchNode is firstMatch for an endpoint of which only the node counts. An
// endpoint without a node matches AnyKey alone, as does one with an empty name,
// which no node has.
func firstMatchNode(keys []string, loc Locality, nodeName *string) int {
	for i, key := range keys {
		if key == AnyKey || nodeName != nil && loc.Member(key, *nodeName) {
			return i
		}
	}
	return len(keys)
}

// inZone reports whether zone is the zone that this node is labelled with.
func inZone(loc Locality, zone *string) bool {
	if zone == nil || *zone == "" {
		return false
	}
	own, ok := loc.Label(corev1.LabelTopologyZone)
	return ok && own == *zone
}
