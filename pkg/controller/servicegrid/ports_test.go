// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestNodePortsOfPorts(t *testing.T) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	port := func(name string, protocol corev1.Protocol, number, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: number, NodePort: nodePort}
	}
	type ports = []corev1.ServicePort
	for _, tc := range []struct {
		name         string
		wanted, live ports
		want         []int32
		otherType    corev1.ServiceType
	}{
		{name: "by name, though the number changes", wanted: ports{port("a", tcp, 81, 0)}, live: ports{port("a", tcp, 80, 30001)}, want: []int32{30001}},
		{name: "by number, though the name changes", wanted: ports{port("b", tcp, 80, 0)}, live: ports{port("a", tcp, 80, 30001)}, want: []int32{30001}},
		{
			name: "the name wins", wanted: ports{port("a", tcp, 81, 0), port("b", tcp, 80, 0)},
			live: ports{port("a", tcp, 80, 30001), port("b", tcp, 81, 30002)}, want: []int32{30001, 30002},
		},
		{
			name: "in another order", wanted: ports{port("b", tcp, 81, 0), port("a", tcp, 80, 0)},
			live: ports{port("a", tcp, 80, 30001), port("b", tcp, 81, 30002)}, want: []int32{30002, 30001},
		},
		{
			name: "a new port gets none", wanted: ports{port("a", tcp, 80, 0), port("b", tcp, 81, 0)},
			live: ports{port("a", tcp, 80, 30001)}, want: []int32{30001, 0},
		},
		{
			name: "the template's wins", wanted: ports{port("a", tcp, 80, 30009)}, live: ports{port("a", tcp, 80, 30001)}, want: []int32{30009},
		},
		{
			name: "one that the template gives to another port", wanted: ports{port("a", tcp, 80, 30002), port("b", tcp, 81, 0)},
			live: ports{port("a", tcp, 80, 30001), port("b", tcp, 81, 30002)}, want: []int32{30002, 0},
		},
		{
			name: "two protocols share one", wanted: ports{port("t", tcp, 53, 0), port("u", udp, 53, 0)},
			live: ports{port("t", tcp, 53, 30053), port("u", udp, 53, 30053)}, want: []int32{30053, 30053},
		},
		{
			name: "two ports cannot share one when they get the same protocol", wanted: ports{port("t", tcp, 53, 0), port("u", tcp, 54, 0)},
			live: ports{port("t", tcp, 53, 30053), port("u", udp, 53, 30053)}, want: []int32{30053, 0},
		},
		{
			name: "one that went with its name", wanted: ports{port("a", udp, 80, 0), port("b", tcp, 80, 0)},
			live: ports{port("a", tcp, 80, 30001)}, want: []int32{30001, 0},
		},
		{name: "no names", wanted: ports{port("", tcp, 81, 0)}, live: ports{port("", tcp, 80, 30001)}, want: []int32{30001}},
		{name: "no node ports with this type", wanted: ports{port("a", tcp, 80, 0)}, live: ports{port("a", tcp, 80, 30001)}, want: []int32{0}, otherType: corev1.ServiceTypeClusterIP},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kind := corev1.ServiceTypeNodePort
			if tc.otherType != "" {
				kind = tc.otherType
			}
			spec := &corev1.ServiceSpec{Type: kind, Ports: tc.wanted}
			keepNodePorts(spec, &corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: tc.live})
			var got []int32
			for _, port := range spec.Ports {
				got = append(got, port.NodePort)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
