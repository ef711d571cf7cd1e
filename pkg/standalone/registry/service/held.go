// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// held is a set of addresses and node ports.
type held struct {
	ips   sets.Set[netip.Addr]
	ports sets.Set[int32]
}

func newHeld() held {
	return held{ips: sets.New[netip.Addr](), ports: sets.New[int32]()}
}

// heldBy returns what a valid Service holds of the pools. It goes by the type
// as well as by the values: an ExternalName Service may carry node ports, which
// mean nothing.
func heldBy(service *corev1.Service) held {
	h := newHeld()
	if needsClusterIP(service) && !isHeadless(service) {
		for _, ip := range service.Spec.ClusterIPs {
			if address, ok := parseAddress(ip); ok {
				h.ips.Insert(address)
			}
		}
	}
	if mayHaveNodePorts(service) {
		for i := range service.Spec.Ports {
			if port := service.Spec.Ports[i].NodePort; port != 0 {
				h.ports.Insert(port)
			}
		}
	}
	if needsHealthCheckNodePort(service) && service.Spec.HealthCheckNodePort != 0 {
		h.ports.Insert(service.Spec.HealthCheckNodePort)
	}
	return h
}
