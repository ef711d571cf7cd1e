// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestImmutableChange(t *testing.T) {
	port := []corev1.ServicePort{{Port: 80}}
	local := corev1.ServiceExternalTrafficPolicyLocal
	healthChecked := loadBalancerSpec(func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy, s.HealthCheckNodePort = local, 31000 })
	headless := clusterIPSpec(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "None", []string{"None"} })
	for _, tc := range []struct {
		name           string
		template, live corev1.ServiceSpec
		want           string
	}{
		{name: "nothing asked for", template: corev1.ServiceSpec{Ports: port}, live: clusterIPSpec(nil)},
		{name: "the same address", template: corev1.ServiceSpec{Ports: port, ClusterIP: "10.0.0.7"}, live: clusterIPSpec(nil)},
		{name: "another address", template: corev1.ServiceSpec{Ports: port, ClusterIP: "10.0.0.8"}, live: clusterIPSpec(nil), want: "spec.template.clusterIP"},
		{name: "to headless", template: corev1.ServiceSpec{Ports: port, ClusterIP: "None"}, live: clusterIPSpec(nil), want: "spec.template.clusterIP"},
		{name: "from headless", template: corev1.ServiceSpec{Ports: port}, live: headless, want: "spec.template.clusterIP"},
		{name: "from ExternalName", template: corev1.ServiceSpec{Ports: port, ClusterIP: "10.0.0.8"}, live: externalNameSpec()},
		{name: "to ExternalName", template: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x"}, live: headless},
		{name: "another first family", template: corev1.ServiceSpec{Ports: port, IPFamilies: []corev1.IPFamily{ipv6}}, live: clusterIPSpec(nil), want: "ipFamilies[0]"},
		{
			name: "another health check port", live: healthChecked, want: "healthCheckNodePort",
			template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: local, HealthCheckNodePort: 31001},
		},
		{
			name: "a class", live: loadBalancerSpec(nil), want: "loadBalancerClass",
			template: corev1.ServiceSpec{Ports: port, Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("c/x")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := immutableChange(&tc.template, &tc.live)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want something about %q", got, tc.want)
			}
		})
	}
}
