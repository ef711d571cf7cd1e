// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package subsets

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
)

// sortAll sorts in place: addresses by IP, then by the UID of their pod; ports
// and subsets by digest.
func sortAll(subsets []corev1.EndpointSubset) {
	for i := range subsets {
		slices.SortFunc(subsets[i].Addresses, compareAddresses)
		slices.SortFunc(subsets[i].NotReadyAddresses, compareAddresses)
		sortByDigest(subsets[i].Ports)
	}
	sortByDigest(subsets)
}

func compareAddresses(a, b corev1.EndpointAddress) int {
	if order := strings.Compare(a.IP, b.IP); order != 0 {
		return order
	}
	switch {
	case a.TargetRef == nil && b.TargetRef == nil:
		return 0
	case a.TargetRef == nil:
		return -1
	case b.TargetRef == nil:
		return 1
	}
	return cmp.Compare(a.TargetRef.UID, b.TargetRef.UID)
}

// sortByDigest sorts by the FNV-128a hash of the printed form that
// k8s.io/utils/dump promises never to change. Nothing but this arbitrary order
// is the one in which kube-controller-manager writes.
func sortByDigest[T any](items []T) {
	if len(items) < 2 {
		return
	}
	type keyed struct {
		digest string
		item   T
	}
	order := make([]keyed, 0, len(items))
	for _, item := range items {
		hash := fnv.New128a()
		fmt.Fprint(hash, dump.ForHash(item))
		order = append(order, keyed{string(hash.Sum(nil)), item})
	}
	slices.SortFunc(order, func(a, b keyed) int { return strings.Compare(a.digest, b.digest) })
	for i := range order {
		items[i] = order[i].item
	}
}
