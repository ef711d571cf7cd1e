// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	corev1 "k8s.io/api/core/v1"
)

// keepNodePorts gives each port of spec without a nodePort that of the live port with the same name, else of the one
// with the same number and protocol. So a port keeps its nodePort when its number changes, and when it is renamed.
func keepNodePorts(spec, live *corev1.ServiceSpec) {
	if !hasNodePorts(spec) {
		return
	}
	// Two ports may share a nodePort if their protocols differ.
	type nodePort struct {
		number   int32
		protocol corev1.Protocol
	}
	taken := map[nodePort]bool{}
	for _, port := range spec.Ports {
		taken[nodePort{port.NodePort, port.Protocol}] = true
	}
	given := make([]bool, len(live.Ports))
	keep := func(same func(wanted, live *corev1.ServicePort) bool) {
		for i := range spec.Ports {
			wanted := &spec.Ports[i]
			for j := range live.Ports {
				kept := nodePort{live.Ports[j].NodePort, wanted.Protocol}
				if wanted.NodePort != 0 || kept.number == 0 || given[j] || taken[kept] || !same(wanted, &live.Ports[j]) {
					continue
				}
				wanted.NodePort, given[j], taken[kept] = kept.number, true, true
			}
		}
	}
	keep(func(wanted, live *corev1.ServicePort) bool { return wanted.Name == live.Name })
	keep(func(wanted, live *corev1.ServicePort) bool {
		return wanted.Port == live.Port && wanted.Protocol == live.Protocol
	})
}

func hasNodePorts(spec *corev1.ServiceSpec) bool {
	switch spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts
	}
	return false
}
