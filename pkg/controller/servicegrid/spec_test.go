// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	ipv4 = corev1.IPv4Protocol
	ipv6 = corev1.IPv6Protocol
)

// clusterIPSpec is what the API server makes of a spec with this one port.
func clusterIPSpec(change func(*corev1.ServiceSpec)) corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"},
		IPFamilies: []corev1.IPFamily{ipv4}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
		Ports:           []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}},
		SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
	}
	if change != nil {
		change(&spec)
	}
	return spec
}

func nodePortSpec(change func(*corev1.ServiceSpec)) corev1.ServiceSpec {
	return clusterIPSpec(func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalTrafficPolicy, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyCluster, 30080
		if change != nil {
			change(s)
		}
	})
}

func loadBalancerSpec(change func(*corev1.ServiceSpec)) corev1.ServiceSpec {
	return nodePortSpec(func(s *corev1.ServiceSpec) {
		s.Type, s.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(true)
		if change != nil {
			change(s)
		}
	})
}

func externalNameSpec() corev1.ServiceSpec {
	return corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", SessionAffinity: corev1.ServiceAffinityNone,
		Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}},
	}
}

func TestDesiredSpec(t *testing.T) {
	port := []corev1.ServicePort{{Port: 80}}
	for _, tc := range []struct {
		name           string
		template, live corev1.ServiceSpec
		want           corev1.ServiceSpec
	}{
		{
			name: "what was allocated and defaulted stays", template: corev1.ServiceSpec{Ports: port},
			live: clusterIPSpec(nil), want: clusterIPSpec(nil),
		},
		{
			name: "what the template had and has no longer goes", template: corev1.ServiceSpec{Ports: port},
			live: clusterIPSpec(func(s *corev1.ServiceSpec) {
				s.Selector = map[string]string{"app": "x"}
				s.ExternalIPs, s.ExternalTrafficPolicy = []string{"192.0.2.1"}, corev1.ServiceExternalTrafficPolicyLocal
				s.PublishNotReadyAddresses, s.TrafficDistribution = true, new("PreferSameZone")
				s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
				s.SessionAffinity = corev1.ServiceAffinityClientIP
				s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(9))}}
				s.Ports = append(s.Ports, corev1.ServicePort{Name: "more", Port: 81})
				s.Ports[0].AppProtocol = new("http")
			}),
			want: clusterIPSpec(nil),
		},
		{
			name: "affinity gets the default of its time", template: corev1.ServiceSpec{Ports: port, SessionAffinity: corev1.ServiceAffinityClientIP},
			live: clusterIPSpec(nil),
			want: clusterIPSpec(func(s *corev1.ServiceSpec) {
				s.SessionAffinity = corev1.ServiceAffinityClientIP
				s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10800))}}
			}),
		},
		{
			name: "to NodePort", template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeNodePort},
			live: clusterIPSpec(nil), want: nodePortSpec(func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 0 }),
		},
		{
			name: "from NodePort", template: corev1.ServiceSpec{Ports: port}, live: nodePortSpec(nil), want: clusterIPSpec(nil),
		},
		{
			name: "NodePort to LoadBalancer keeps the node ports", template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeLoadBalancer},
			live: nodePortSpec(nil), want: loadBalancerSpec(nil),
		},
		{
			name:     "a LoadBalancer without node ports gives them up",
			template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false)},
			live:     loadBalancerSpec(nil),
			want: loadBalancerSpec(func(s *corev1.ServiceSpec) {
				s.AllocateLoadBalancerNodePorts, s.Ports[0].NodePort = new(false), 0
			}),
		},
		{
			name: "the health check port and the class stay",
			template: corev1.ServiceSpec{
				Ports: port, Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			},
			live: loadBalancerSpec(func(s *corev1.ServiceSpec) {
				s.ExternalTrafficPolicy, s.HealthCheckNodePort, s.LoadBalancerClass = corev1.ServiceExternalTrafficPolicyLocal, 31000, new("c/x")
			}),
			want: loadBalancerSpec(func(s *corev1.ServiceSpec) {
				s.ExternalTrafficPolicy, s.HealthCheckNodePort, s.LoadBalancerClass = corev1.ServiceExternalTrafficPolicyLocal, 31000, new("c/x")
			}),
		},
		{
			name: "the health check port goes with the policy Local", template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeLoadBalancer},
			live: loadBalancerSpec(func(s *corev1.ServiceSpec) {
				s.ExternalTrafficPolicy, s.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 31000
			}),
			want: loadBalancerSpec(nil),
		},
		{
			name: "from LoadBalancer", template: corev1.ServiceSpec{Ports: port},
			live: loadBalancerSpec(func(s *corev1.ServiceSpec) {
				s.ExternalTrafficPolicy, s.HealthCheckNodePort, s.LoadBalancerClass = corev1.ServiceExternalTrafficPolicyLocal, 31000, new("c/x")
			}),
			want: clusterIPSpec(nil),
		},
		{
			name: "to ExternalName", template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
			live: loadBalancerSpec(nil), want: externalNameSpec(),
		},
		{
			name: "from ExternalName", template: corev1.ServiceSpec{Ports: port}, live: externalNameSpec(),
			want: clusterIPSpec(func(s *corev1.ServiceSpec) {
				s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy = "", nil, nil, nil
			}),
		},
		{
			name: "headless stays headless", template: corev1.ServiceSpec{Ports: port, ClusterIP: corev1.ClusterIPNone},
			live: clusterIPSpec(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "None", []string{"None"} }),
			want: clusterIPSpec(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "None", []string{"None"} }),
		},
		{
			name:     "the second family that the API server added stays",
			template: corev1.ServiceSpec{Ports: port, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), IPFamilies: []corev1.IPFamily{ipv6}, ClusterIP: "fd00::7"},
			live:     clusterIPSpec(dualStack), want: clusterIPSpec(dualStack),
		},
		{
			name:     "to dual stack",
			template: corev1.ServiceSpec{Ports: port, IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack)},
			live:     clusterIPSpec(nil),
			want:     clusterIPSpec(func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack) }),
		},
		{
			name:     "to single stack",
			template: corev1.ServiceSpec{Ports: port, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack)},
			live:     clusterIPSpec(dualStack),
			want: clusterIPSpec(func(s *corev1.ServiceSpec) {
				s.ClusterIP, s.ClusterIPs, s.IPFamilies = "fd00::7", []string{"fd00::7"}, []corev1.IPFamily{ipv6}
			}),
		},
		{
			name: "a policy that is no longer asked for stays, as it does under kubectl apply", template: corev1.ServiceSpec{Ports: port},
			live: clusterIPSpec(dualStack), want: clusterIPSpec(dualStack),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template, live := tc.template.DeepCopy(), tc.live.DeepCopy()
			got := desiredSpec(template, live)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tc.template, template) + cmp.Diff(&tc.live, live); diff != "" {
				t.Errorf("an argument was changed:\n%s", diff)
			}
			if diff := cmp.Diff(got, desiredSpec(template, got)); diff != "" {
				t.Errorf("it is not what it wants (-first +second):\n%s", diff)
			}
		})
	}
}

func dualStack(s *corev1.ServiceSpec) {
	s.ClusterIP, s.ClusterIPs = "fd00::7", []string{"fd00::7", "10.0.0.7"}
	s.IPFamilies, s.IPFamilyPolicy = []corev1.IPFamily{ipv6, ipv4}, new(corev1.IPFamilyPolicyPreferDualStack)
}

// A field that a new version of Kubernetes brings is the template's, unless somebody finds that it is allocated.
func TestEveryFieldIsAllocatedOrOfTheTemplate(t *testing.T) {
	allocated := map[string]bool{
		"ClusterIP": true, "ClusterIPs": true, "IPFamilies": true, "IPFamilyPolicy": true, "LoadBalancerClass": true, "HealthCheckNodePort": true,
	}
	ofTemplate := strings.Fields("Ports Selector Type ExternalIPs SessionAffinity LoadBalancerIP LoadBalancerSourceRanges ExternalName " +
		"ExternalTrafficPolicy PublishNotReadyAddresses SessionAffinityConfig AllocateLoadBalancerNodePorts InternalTrafficPolicy TrafficDistribution")
	known := map[string]bool{}
	for _, name := range ofTemplate {
		known[name] = true
	}
	for field := range reflect.TypeFor[corev1.ServiceSpec]().Fields() {
		if !known[field.Name] && !allocated[field.Name] {
			t.Errorf("ServiceSpec.%s is new: say here of which kind it is", field.Name)
		}
	}
}
