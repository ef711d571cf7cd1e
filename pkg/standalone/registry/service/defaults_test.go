// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestSetDefaults(t *testing.T) {
	cluster := ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	for _, test := range []struct {
		name     string
		in, want corev1.ServiceSpec
	}{
		{
			name: "nothing set",
			want: corev1.ServiceSpec{Type: "ClusterIP", SessionAffinity: "None", InternalTrafficPolicy: cluster},
		},
		{
			name: "ports",
			in: corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Port: 80}, {Port: 53, Protocol: "UDP", TargetPort: intstr.FromString("dns")}, {Port: 81, TargetPort: intstr.FromString("")}, {Port: 82, TargetPort: intstr.FromInt32(8082)},
			}},
			want: corev1.ServiceSpec{Type: "ClusterIP", SessionAffinity: "None", InternalTrafficPolicy: cluster, Ports: []corev1.ServicePort{
				{Port: 80, Protocol: "TCP", TargetPort: intstr.FromInt32(80)},
				{Port: 53, Protocol: "UDP", TargetPort: intstr.FromString("dns")},
				{Port: 81, Protocol: "TCP", TargetPort: intstr.FromInt32(81)},
				{Port: 82, Protocol: "TCP", TargetPort: intstr.FromInt32(8082)},
			}},
		},
		{
			name: "headless has a targetPort too",
			in:   corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Port: 80}}},
			want: corev1.ServiceSpec{ClusterIP: "None", Type: "ClusterIP", SessionAffinity: "None", InternalTrafficPolicy: cluster, Ports: []corev1.ServicePort{
				{Port: 80, Protocol: "TCP", TargetPort: intstr.FromInt32(80)},
			}},
		},
		{
			name: "node port",
			in:   corev1.ServiceSpec{Type: "NodePort"},
			want: corev1.ServiceSpec{Type: "NodePort", SessionAffinity: "None", InternalTrafficPolicy: cluster, ExternalTrafficPolicy: "Cluster"},
		},
		{
			name: "load balancer",
			in:   corev1.ServiceSpec{Type: "LoadBalancer"},
			want: corev1.ServiceSpec{
				Type: "LoadBalancer", SessionAffinity: "None", InternalTrafficPolicy: cluster, ExternalTrafficPolicy: "Cluster", AllocateLoadBalancerNodePorts: ptr.To(true),
			},
		},
		{
			name: "load balancer with its own values",
			in: corev1.ServiceSpec{
				Type: "LoadBalancer", ExternalTrafficPolicy: "Local", AllocateLoadBalancerNodePorts: ptr.To(false), InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			},
			want: corev1.ServiceSpec{
				Type: "LoadBalancer", SessionAffinity: "None", ExternalTrafficPolicy: "Local", AllocateLoadBalancerNodePorts: ptr.To(false),
				InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			},
		},
		{
			name: "external IPs",
			in:   corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}},
			want: corev1.ServiceSpec{
				ExternalIPs: []string{"192.0.2.1"}, Type: "ClusterIP", SessionAffinity: "None", InternalTrafficPolicy: cluster, ExternalTrafficPolicy: "Cluster",
			},
		},
		{
			name: "external name",
			in:   corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"},
			want: corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com", SessionAffinity: "None"},
		},
		{
			name: "client IP affinity",
			in:   corev1.ServiceSpec{SessionAffinity: "ClientIP", SessionAffinityConfig: &corev1.SessionAffinityConfig{}},
			want: corev1.ServiceSpec{
				Type: "ClusterIP", InternalTrafficPolicy: cluster, SessionAffinity: "ClientIP",
				SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(10800))}},
			},
		},
		{
			name: "no affinity drops the config",
			in:   corev1.ServiceSpec{SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(7))}}},
			want: corev1.ServiceSpec{Type: "ClusterIP", InternalTrafficPolicy: cluster, SessionAffinity: "None"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := &corev1.Service{Spec: test.in}
			SetDefaults(service)
			if diff := cmp.Diff(test.want, service.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := service.DeepCopy()
			SetDefaults(again)
			if diff := cmp.Diff(service, again); diff != "" {
				t.Errorf("defaulting twice (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestSetDefaultsOfTheStatus(t *testing.T) {
	service := &corev1.Service{
		Spec: corev1.ServiceSpec{Type: "LoadBalancer"},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
			{IP: "192.0.2.1"}, {Hostname: "lb"}, {IP: "192.0.2.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)},
		}}},
	}
	SetDefaults(service)
	want := []corev1.LoadBalancerIngress{
		{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}, {Hostname: "lb"}, {IP: "192.0.2.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)},
	}
	if diff := cmp.Diff(want, service.Status.LoadBalancer.Ingress); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
