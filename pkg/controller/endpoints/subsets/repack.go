// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package subsets

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// identity tells addresses apart: pods on the network of one host share an IP.
type identity struct {
	ip  string
	uid types.UID
}

// offer is one port and who offers it.
type offer struct {
	port corev1.EndpointPort
	// ready says for the number of an address whether it is ready here.
	ready map[int]bool
}

// repacking is the state of one Repack.
type repacking struct {
	addresses []corev1.EndpointAddress // as first seen
	numbers   map[identity]int         // indexes of addresses
	offers    map[corev1.EndpointPort]*offer
	order     []*offer // in the order of their first appearance
}

// Repack returns the canonical form of subsets, the one of
// kube-controller-manager: each address at most once per port, ports that are
// offered by the same addresses in one subset, everything in canonical order.
// An address that is both ready and not ready for a port is not ready. The
// addresses of subsets without ports, which headless Services may have, are
// kept in a subset of their own unless exactly these addresses offer a port.
func Repack(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	r := repacking{numbers: map[identity]int{}, offers: map[corev1.EndpointPort]*offer{}}
	for i := range subsets {
		subset := &subsets[i]
		if len(subset.Ports) == 0 {
			r.add(subset, corev1.EndpointPort{})
			continue
		}
		for _, port := range subset.Ports {
			r.add(subset, port)
		}
	}
	packed := r.pack()
	sortAll(packed)
	return packed
}

func (r *repacking) add(subset *corev1.EndpointSubset, port corev1.EndpointPort) {
	if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
		return
	}
	if port.Port <= 0 {
		port = corev1.EndpointPort{}
	}
	// An application protocol makes two ports equal only if they share the
	// pointer. Those of one Service do.
	o := r.offers[port]
	if o == nil {
		o = &offer{port: port, ready: map[int]bool{}}
		r.offers[port] = o
		r.order = append(r.order, o)
	}
	for i := range subset.Addresses {
		number := r.number(&subset.Addresses[i])
		if _, seen := o.ready[number]; !seen {
			o.ready[number] = true
		}
	}
	for i := range subset.NotReadyAddresses {
		o.ready[r.number(&subset.NotReadyAddresses[i])] = false
	}
}

func (r *repacking) number(address *corev1.EndpointAddress) int {
	id := identity{ip: address.IP}
	if address.TargetRef != nil {
		id.uid = address.TargetRef.UID
	}
	number, seen := r.numbers[id]
	if !seen {
		number = len(r.addresses)
		r.numbers[id] = number
		r.addresses = append(r.addresses, *address)
	}
	return number
}

func (r *repacking) pack() []corev1.EndpointSubset {
	packed := make([]corev1.EndpointSubset, 0, len(r.order))
	byAddresses := map[string]int{} // indexes of packed
	for _, o := range r.order {
		numbers := make([]int, 0, len(o.ready))
		for number := range o.ready {
			numbers = append(numbers, number)
		}
		slices.Sort(numbers)
		var key []byte
		for _, number := range numbers {
			signed := int64(number + 1)
			if !o.ready[number] {
				signed = -signed
			}
			key = binary.AppendVarint(key, signed)
		}
		i, seen := byAddresses[string(key)]
		if !seen {
			i = len(packed)
			byAddresses[string(key)] = i
			var subset corev1.EndpointSubset
			for _, number := range numbers {
				if o.ready[number] {
					subset.Addresses = append(subset.Addresses, r.addresses[number])
				} else {
					subset.NotReadyAddresses = append(subset.NotReadyAddresses, r.addresses[number])
				}
			}
			packed = append(packed, subset)
		}
		if o.port.Port > 0 {
			packed[i].Ports = append(packed[i].Ports, o.port)
		}
	}
	return packed
}
