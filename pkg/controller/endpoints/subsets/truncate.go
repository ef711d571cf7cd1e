// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package subsets

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Capacity is how many addresses an Endpoints object has at most, counted once
// per subset: more make an object too large to be sent for each change of one
// of them. EndpointSlices have no such limit.
const Capacity = 1000

// Truncate returns the subsets cut down to Capacity, and whether it had to cut.
// Not ready addresses go first. Those that stay are taken from all subsets, in
// proportion, the first of each; a subset that loses all goes, because a subset
// without addresses is invalid.
func Truncate(subsets []corev1.EndpointSubset) ([]corev1.EndpointSubset, bool) {
	ready, notReady := 0, 0
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	if ready+notReady <= Capacity {
		return subsets, false
	}

	// Of one kind of addresses only some stay.
	total, room := notReady, Capacity-ready
	if ready > Capacity {
		total, room = ready, Capacity
	}
	left := room
	take := func(addresses []corev1.EndpointAddress) []corev1.EndpointAddress {
		// The last subsets may get less than their share, since all shares are
		// rounded up. The expression is kube-controller-manager's, rounding
		// errors included: it decides which addresses stay.
		share := int(math.Ceil(float64(len(addresses)) / float64(total) * float64(room)))
		share = min(share, left, len(addresses))
		left -= share
		if share == 0 {
			return nil
		}
		return addresses[:share:share]
	}

	cut := make([]corev1.EndpointSubset, 0, len(subsets))
	for _, subset := range subsets {
		if ready > Capacity {
			subset.Addresses = take(subset.Addresses)
			subset.NotReadyAddresses = nil
		} else {
			subset.NotReadyAddresses = take(subset.NotReadyAddresses)
		}
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			cut = append(cut, subset)
		}
	}
	return cut, true
}
