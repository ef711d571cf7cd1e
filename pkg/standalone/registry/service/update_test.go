// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestUpdateAllocatesAndReleases(t *testing.T) {
	v4, dual := []string{range4}, []string{range4, range6}
	none := corev1.ClusterIPNone
	pods := map[string]string{"app": "web"}
	one, two := "SingleStack IPv4 "+first4, "RequireDualStack IPv4 IPv6 "+first4+" "+first6
	for _, test := range []struct {
		name   string
		ranges []string
		old    corev1.ServiceSpec
		patch  func(*corev1.ServiceSpec)
		want   string
	}{
		{"nothing", v4, corev1.ServiceSpec{}, func(*corev1.ServiceSpec) {}, one},
		{"clusterIP cleared", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIP = "" }, one},
		{"clusterIPs cleared", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIPs = nil }, one},
		{"all cleared", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy = "", nil, nil, nil
		}, two},
		{"clusterIP changed", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.5" },
			`spec.clusterIPs[0]: Invalid value: ["10.96.0.5"]: may not change once set`},
		{"clusterIPs changed", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.96.0.5"} },
			`spec.clusterIPs: Invalid value: ["10.96.0.5"]: first value must match ` + "`clusterIP`"},
		{"to headless", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIP = none },
			`spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`},
		{"PreferDualStack on one family to headless", v4, corev1.ServiceSpec{IPFamilyPolicy: prefer}, func(s *corev1.ServiceSpec) { s.ClusterIP = none },
			`spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`},
		{"from headless", v4, corev1.ServiceSpec{ClusterIP: none, Selector: pods}, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.5" },
			`spec.clusterIPs[0]: Invalid value: ["10.96.0.5"]: may not change once set`},
		{"headless changes families", dual, corev1.ServiceSpec{ClusterIP: none, Selector: pods}, func(s *corev1.ServiceSpec) { s.IPFamilies = families("IPv6") }, "SingleStack IPv6 None"},
		{"family changed", dual, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.IPFamilies = families("IPv6") },
			`spec.clusterIPs[0]: Invalid value: "` + first4 + "\": expected an IPv6 value as indicated by `ipFamilies[0]`"},

		{"to RequireDualStack", dual, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = require }, two},
		{"to PreferDualStack", dual, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = prefer }, "PreferDualStack IPv4 IPv6 " + first4 + " " + first6},
		{"to PreferDualStack on one family", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = prefer }, "PreferDualStack IPv4 " + first4},
		{"to RequireDualStack on one family", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = require },
			`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		{"to a given second address", dual, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) {
			s.IPFamilyPolicy, s.ClusterIPs = require, append(s.ClusterIPs, "fd00:10:96::5")
		}, "RequireDualStack IPv4 IPv6 " + first4 + " fd00:10:96::5"},
		{"second address without a policy", dual, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.ClusterIPs = append(s.ClusterIPs, "fd00:10:96::5") },
			`spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`},
		{"to SingleStack", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = single }, one},
		{"to SingleStack, all said", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) {
			s.IPFamilyPolicy, s.ClusterIPs, s.IPFamilies = single, s.ClusterIPs[:1], s.IPFamilies[:1]
		}, one},
		{"second address dropped without a policy", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) { s.ClusterIPs = s.ClusterIPs[:1] },
			`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary cluster IP`},
		{"second family dropped without a policy", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) { s.IPFamilies = s.IPFamilies[:1] },
			`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary IP family`},
		{"second address changed", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) { s.ClusterIPs[1] = "fd00:10:96::5" },
			`spec.clusterIPs[1]: Invalid value: ["` + first4 + `","fd00:10:96::5"]: may not change once set`},
		{"SingleStack of the other family", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) {
			s.IPFamilyPolicy, s.ClusterIP, s.ClusterIPs, s.IPFamilies = single, s.ClusterIPs[1], s.ClusterIPs[1:], s.IPFamilies[1:]
		}, `[spec.clusterIPs[0]: Invalid value: ["` + first6 + `"]: may not change once set, spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set]`},

		{"to ExternalName", dual, corev1.ServiceSpec{IPFamilyPolicy: require}, func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = "ExternalName", "example.com" }, "-"},
		{"to ExternalName with another address", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.ClusterIP = "ExternalName", "example.com", "10.96.0.5"
		}, `spec.clusterIPs: Forbidden: may not be set for ExternalName services`},
		{"from ExternalName", dual, corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}, func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = "ClusterIP", "" }, one},
		{"from ExternalName to a given address", dual, corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.ClusterIP = "ClusterIP", "", "10.96.0.5"
		}, "SingleStack IPv4 10.96.0.5"},
		{"to ExternalName with an address that means nothing", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy = "ExternalName", "example.com", "10.96.0.5", nil, nil, nil
		}, "clusterIP 10.96.0.5 but clusterIPs []"},
		{"from ExternalName to headless", v4, corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com", Selector: pods}, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.ClusterIP = "ClusterIP", "", none
		}, "SingleStack IPv4 None"},
		{"from ExternalName, node ports begin to count", v4,
			corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}},
			func(s *corev1.ServiceSpec) { s.Type = "NodePort" }, one + " 80:30001"},

		{"to NodePort", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.Type = "NodePort" }, one + " 80:30086"},
		{"to a given NodePort", v4, corev1.ServiceSpec{}, func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = "NodePort", 30001 }, one + " 80:30001"},
		{"NodePort cleared", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 0 }, one + " 80:30086"},
		{"NodePort changed", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30001 }, one + " 80:30001"},
		{"port added", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) {
			s.Ports[0].Name, s.Ports[0].NodePort = "a", 0
			s.Ports = append(s.Ports, corev1.ServicePort{Name: "b", Port: 81})
		}, one + " 80:30087 81:30088"},
		{"ports renamed crosswise", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30001}, {Name: "b", Port: 81, NodePort: 30002}}},
			func(s *corev1.ServiceSpec) {
				s.Ports = []corev1.ServicePort{{Name: "b", Port: 80}, {Name: "a", Port: 81}}
			}, one + " 80:30002 81:30001"},
		{"a named node port stays where it was put", v4,
			corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30001}, {Name: "b", Port: 81, NodePort: 30002}}},
			func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 30001 }, one + " 80:30086 81:30001"},
		{"protocols come to share a node port", v4,
			corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "t", Port: 53, NodePort: 30053}, {Name: "u", Port: 53, Protocol: "UDP", NodePort: 30054}}},
			func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = 30053 }, one + " 53:30053 53:30053"},
		{"two ports come to share a new node port", v4,
			corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "t", Port: 53, NodePort: 30053}, {Name: "u", Port: 54, Protocol: "UDP", NodePort: 30054}}},
			func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 30001, 30001 }, one + " 53:30001 54:30001"},
		{"two ports of a protocol share a node port", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30001}, {Name: "b", Port: 81, NodePort: 30002}}},
			func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = 30001 }, `spec.ports[1].nodePort: Duplicate value: 30001`},
		{"NodePort to ClusterIP", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Type = "ClusterIP" }, one},
		{"NodePort to ClusterIP with another node port", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = "ClusterIP", 30001 },
			"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
		{"NodePort to ExternalName", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = "ExternalName", "example.com" }, "-"},
		{"NodePort to LoadBalancer", v4, corev1.ServiceSpec{Type: "NodePort"}, func(s *corev1.ServiceSpec) { s.Type = "LoadBalancer" }, one + " 80:30086"},
		{"LoadBalancer gives up node ports", v4, corev1.ServiceSpec{Type: "LoadBalancer"}, func(s *corev1.ServiceSpec) {
			s.AllocateLoadBalancerNodePorts, s.Ports[0].NodePort = ptr.To(false), 0
		}, one},
		{"LoadBalancer keeps node ports", v4, corev1.ServiceSpec{Type: "LoadBalancer"}, func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = ptr.To(false) }, one + " 80:30086"},

		{"health checks begin", v4, corev1.ServiceSpec{Type: "LoadBalancer"}, func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "Local" }, one + " 80:30086 health:30087"},
		{"health check port cleared", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local"}, func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 0 }, one + " 80:30086 health:30087"},
		{"health check port changed", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local"}, func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 30001 },
			`spec.healthCheckNodePort: Forbidden: field is immutable`},
		{"health checks end", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local"}, func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "Cluster" }, one + " 80:30086"},
		{"health check port becomes a node port", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30001}, func(s *corev1.ServiceSpec) {
			s.Type, s.HealthCheckNodePort, s.Ports[0].NodePort = "NodePort", 0, 30001
		}, `spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated`},
		{"LoadBalancer with health checks to ClusterIP", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local"}, func(s *corev1.ServiceSpec) { s.Type = "ClusterIP" }, one},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, test.ranges...)
			if len(test.old.Ports) == 0 {
				test.old.Ports = web()
			}
			before := c.create(named("web", test.old))
			want := test.want
			change := func(service *corev1.Service) { test.patch(&service.Spec) }
			dry, err := c.tryPatch("web", change, true)
			if got := result(dry, err); got != want {
				t.Errorf("dry run:\n got %s\nwant %s", got, want)
			}
			c.checkPools()
			if diff := cmp.Diff(before, c.get("web")); diff != "" {
				t.Errorf("after the dry run (-before +after):\n%s", diff)
			}
			if got := result(c.tryPatch("web", change, false)); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			c.checkPools()
			if err := c.tryDelete("web", false); err != nil {
				t.Error(err)
			}
			c.checkPools()
		})
	}
}

// TestManifestCanBePutAgain: what was left to the server stays as it is.
func TestManifestCanBePutAgain(t *testing.T) {
	for _, spec := range []corev1.ServiceSpec{
		{Ports: web()},
		{Ports: web(), Type: "NodePort"},
		{Ports: web(), Type: "LoadBalancer", ExternalTrafficPolicy: "Local"},
		{Ports: web(), IPFamilyPolicy: prefer},
		{Ports: web(), IPFamilyPolicy: require, IPFamilies: families("IPv6", "IPv4")},
		{Ports: web(), ClusterIP: corev1.ClusterIPNone},
		{Type: "ExternalName", ExternalName: "example.com"},
		{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "u", Port: 53, Protocol: "UDP"}, {Name: "t", Port: 53}}},
	} {
		c := newCluster(t, range4, range6)
		manifest := named("web", spec)
		created := c.create(manifest)
		again, err := c.tryPut(manifest, false)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(created, again); diff != "" {
			t.Errorf("(-created +put again):\n%s", diff)
		}
		c.checkPools()
	}
}

func TestChangingTheTypeClearsWhatItHasNoUseFor(t *testing.T) {
	full := corev1.ServiceSpec{
		Type: "LoadBalancer", LoadBalancerClass: ptr.To("example.com/lb"), ExternalTrafficPolicy: "Local", Ports: web(),
	}
	for _, test := range []struct {
		to   corev1.ServiceType
		name string
		want func(*corev1.ServiceSpec)
	}{
		{to: "NodePort", want: func(*corev1.ServiceSpec) {}},
		{to: "ClusterIP", want: func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.ExternalTrafficPolicy = 0, "" }},
		{to: "ExternalName", name: "example.com", want: func(s *corev1.ServiceSpec) {
			s.Ports[0].NodePort, s.ExternalTrafficPolicy = 0, ""
			s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy, s.InternalTrafficPolicy = "", nil, nil, nil, nil
		}},
	} {
		t.Run(string(test.to), func(t *testing.T) {
			c := newCluster(t, range4)
			want := c.create(named("web", full)).Spec
			want.Type, want.ExternalName = test.to, test.name
			want.LoadBalancerClass, want.AllocateLoadBalancerNodePorts, want.HealthCheckNodePort = nil, nil, 0
			test.want(&want)
			got, err := c.tryPatch("web", func(service *corev1.Service) {
				service.Spec.Type, service.Spec.ExternalName = test.to, test.name
			}, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			c.checkPools()
		})
	}
}
