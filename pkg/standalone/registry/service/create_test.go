// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// Shorthand for the tables.
var (
	single  = ptr.To(corev1.IPFamilyPolicySingleStack)
	prefer  = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	require = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
)

func families(text ...corev1.IPFamily) []corev1.IPFamily { return text }

func web() []corev1.ServicePort { return []corev1.ServicePort{{Port: 80}} }

// allocated renders what is allocated for a Service.
func allocated(service *corev1.Service) string {
	spec := &service.Spec
	if spec.ClusterIP != "" && (len(spec.ClusterIPs) == 0 || spec.ClusterIPs[0] != spec.ClusterIP) {
		return fmt.Sprintf("clusterIP %s but clusterIPs %v", spec.ClusterIP, spec.ClusterIPs)
	}
	parts := []string{string(ptr.Deref(spec.IPFamilyPolicy, "-"))}
	for _, family := range spec.IPFamilies {
		parts = append(parts, string(family))
	}
	parts = append(parts, spec.ClusterIPs...)
	for i := range spec.Ports {
		if spec.Ports[i].NodePort != 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", spec.Ports[i].Port, spec.Ports[i].NodePort))
		}
	}
	if spec.HealthCheckNodePort != 0 {
		parts = append(parts, fmt.Sprintf("health:%d", spec.HealthCheckNodePort))
	}
	return strings.Join(parts, " ")
}

// result is what was allocated, or the error without what is the same in all.
func result(service *corev1.Service, err error) string {
	if err == nil {
		return allocated(service)
	}
	text := err.Error()
	if apierrors.IsInvalid(err) {
		_, text, _ = strings.Cut(text, "is invalid: ")
	}
	return text
}

// orNone makes the absence of an error one.
func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

func TestCreateAllocates(t *testing.T) {
	v4, v6, dual, dual6 := []string{range4}, []string{range6}, []string{range4, range6}, []string{range6, range4}
	none := corev1.ClusterIPNone
	pods := map[string]string{"app": "web"}
	for _, test := range []struct {
		name   string
		ranges []string
		spec   corev1.ServiceSpec
		want   string
	}{
		{"IPv4 cluster", v4, corev1.ServiceSpec{}, "SingleStack IPv4 " + first4},
		{"IPv6 cluster", v6, corev1.ServiceSpec{}, "SingleStack IPv6 " + first6},
		{"dual-stack cluster", dual, corev1.ServiceSpec{}, "SingleStack IPv4 " + first4},
		{"dual-stack cluster, IPv6 first", dual6, corev1.ServiceSpec{}, "SingleStack IPv6 " + first6},
		{"SingleStack", dual, corev1.ServiceSpec{IPFamilyPolicy: single}, "SingleStack IPv4 " + first4},
		{"other family", dual, corev1.ServiceSpec{IPFamilies: families("IPv6")}, "SingleStack IPv6 " + first6},
		{"PreferDualStack", dual, corev1.ServiceSpec{IPFamilyPolicy: prefer}, "PreferDualStack IPv4 IPv6 " + first4 + " " + first6},
		{"PreferDualStack, IPv6 first", dual, corev1.ServiceSpec{IPFamilyPolicy: prefer, IPFamilies: families("IPv6")}, "PreferDualStack IPv6 IPv4 " + first6 + " " + first4},
		{"PreferDualStack on one family", v4, corev1.ServiceSpec{IPFamilyPolicy: prefer}, "PreferDualStack IPv4 " + first4},
		{"RequireDualStack", dual6, corev1.ServiceSpec{IPFamilyPolicy: require}, "RequireDualStack IPv6 IPv4 " + first6 + " " + first4},
		{"RequireDualStack on one family", v4, corev1.ServiceSpec{IPFamilyPolicy: require},
			`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		{"both families on one family", v4, corev1.ServiceSpec{IPFamilyPolicy: require, IPFamilies: families("IPv4", "IPv6")},
			`[spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services, spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster]`},
		{"absent family", v4, corev1.ServiceSpec{IPFamilies: families("IPv6")}, `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
		{"two families without a policy", dual, corev1.ServiceSpec{IPFamilies: families("IPv4", "IPv6")},
			`spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`},
		{"two addresses without a policy", dual, corev1.ServiceSpec{ClusterIP: "10.96.0.5", ClusterIPs: []string{"10.96.0.5", "fd00:10:96::5"}},
			`spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`},

		{"given address", v4, corev1.ServiceSpec{ClusterIP: "10.96.0.1"}, "SingleStack IPv4 10.96.0.1"},
		{"given address of the other family", dual, corev1.ServiceSpec{ClusterIP: "fd00:10:96::5"}, "SingleStack IPv6 fd00:10:96::5"},
		{"given addresses", dual, corev1.ServiceSpec{IPFamilyPolicy: require, ClusterIP: "fd00:10:96::5", ClusterIPs: []string{"fd00:10:96::5", "10.96.0.5"}},
			"RequireDualStack IPv6 IPv4 fd00:10:96::5 10.96.0.5"},
		{"one of two given", dual, corev1.ServiceSpec{IPFamilyPolicy: prefer, ClusterIP: "10.96.0.5"}, "PreferDualStack IPv4 IPv6 10.96.0.5 " + first6},
		{"address form is kept", v6, corev1.ServiceSpec{ClusterIP: "FD00:10:96:0::5"}, "SingleStack IPv6 FD00:10:96:0::5"},
		{"address of an absent family", v4, corev1.ServiceSpec{ClusterIP: "fd00::1"}, `spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster`},
		{"address out of range", v4, corev1.ServiceSpec{ClusterIP: "10.97.0.1"},
			`spec.clusterIPs: Invalid value: ["10.97.0.1"]: failed to allocate IP 10.97.0.1: the provided network does not match the current range`},
		{"network address", v4, corev1.ServiceSpec{ClusterIP: "10.96.0.0"},
			`spec.clusterIPs: Invalid value: ["10.96.0.0"]: failed to allocate IP 10.96.0.0: the provided network does not match the current range`},
		{"plural without singular", v4, corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.5"}}, `spec.clusterIPs: Invalid value: ["10.96.0.5"]: must be empty when ` + "`clusterIP` is not specified"},

		{"headless", dual, corev1.ServiceSpec{ClusterIP: none, Selector: pods}, "SingleStack IPv4 None"},
		{"headless PreferDualStack", dual, corev1.ServiceSpec{ClusterIP: none, Selector: pods, IPFamilyPolicy: prefer}, "PreferDualStack IPv4 IPv6 None"},
		{"headless RequireDualStack on one family", v4, corev1.ServiceSpec{ClusterIP: none, Selector: pods, IPFamilyPolicy: require},
			`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		{"headless without a selector", v4, corev1.ServiceSpec{ClusterIP: none}, "RequireDualStack IPv4 IPv6 None"},
		{"headless without a selector, IPv6", v6, corev1.ServiceSpec{ClusterIP: none}, "RequireDualStack IPv6 IPv4 None"},
		{"headless without a selector, one family", v4, corev1.ServiceSpec{ClusterIP: none, IPFamilyPolicy: single}, "SingleStack IPv4 None"},
		{"headless without a selector, an absent family", v4, corev1.ServiceSpec{ClusterIP: none, IPFamilyPolicy: single, IPFamilies: families("IPv6")}, "SingleStack IPv6 None"},

		{"external name", dual, corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}, "-"},
		{"external name keeps node ports that mean nothing", v4, corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}}, "- 80:30001"},

		{"node port", v4, corev1.ServiceSpec{Type: "NodePort"}, "SingleStack IPv4 " + first4 + " 80:30086"},
		{"given node port", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}}, "SingleStack IPv4 " + first4 + " 80:30001"},
		{"node port out of range", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 8080}}},
			`spec.ports[0].nodePort: Invalid value: 8080: provided port is not in the valid range. The range of valid ports is 30000-32767`},
		{"a picked one is none that another port asks for", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81, NodePort: firstPort}}},
			"SingleStack IPv4 " + first4 + " 80:30087 81:30086"},
		{"one node port for both protocols", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "u", Port: 53, Protocol: "UDP"}, {Name: "t", Port: 53}}},
			"SingleStack IPv4 " + first4 + " 53:30086 53:30086"},
		{"one node port for both protocols, given once", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "u", Port: 53, Protocol: "UDP"}, {Name: "t", Port: 53, NodePort: 30053}}},
			"SingleStack IPv4 " + first4 + " 53:30053 53:30053"},
		{"a node port for each protocol", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "u", Port: 53, Protocol: "UDP", NodePort: 30054}, {Name: "t", Port: 53, NodePort: 30053}}},
			"SingleStack IPv4 " + first4 + " 53:30054 53:30053"},
		{"one node port for two ports", v4, corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30053}, {Name: "b", Port: 81, Protocol: "UDP", NodePort: 30053}}},
			`spec.ports[1].nodePort: Invalid value: 30053: provided port is already allocated`},
		{"load balancer", v4, corev1.ServiceSpec{Type: "LoadBalancer"}, "SingleStack IPv4 " + first4 + " 80:30086"},
		{"load balancer without node ports", v4, corev1.ServiceSpec{Type: "LoadBalancer", AllocateLoadBalancerNodePorts: ptr.To(false)}, "SingleStack IPv4 " + first4},
		{"load balancer with one node port", v4, corev1.ServiceSpec{
			Type: "LoadBalancer", AllocateLoadBalancerNodePorts: ptr.To(false), Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81, NodePort: 30001}},
		}, "SingleStack IPv4 " + first4 + " 81:30001"},
		{"load balancer with health checks", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local"}, "SingleStack IPv4 " + first4 + " 80:30086 health:30087"},
		{"given health check port", v4, corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30002}, "SingleStack IPv4 " + first4 + " 80:30086 health:30002"},
		{"health check port is a node port", v4, corev1.ServiceSpec{
			Type: "LoadBalancer", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30002, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30002}},
		}, "Internal error occurred: failed to allocate requested HealthCheck NodePort 30002: provided port is already allocated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, test.ranges...)
			if len(test.spec.Ports) == 0 {
				test.spec.Ports = web()
			}
			dry, dryErr := c.tryCreate(named("web", test.spec), true)
			c.checkPools()
			if got := result(dry, dryErr); got != test.want {
				t.Errorf("dry run:\n got %s\nwant %s", got, test.want)
			}
			if got := result(c.tryCreate(named("web", test.spec), false)); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			c.checkPools()
			if len(c.list()) == 0 {
				return
			}
			if err := c.tryDelete("web", false); err != nil {
				t.Error(err)
			}
			c.checkPools()
		})
	}
}

func TestConflicts(t *testing.T) {
	c := newClusterOf(t, tinyConfig())
	c.create(named("kubernetes", corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: web()}))
	c.create(named("web", corev1.ServiceSpec{
		Type: "LoadBalancer", ExternalTrafficPolicy: "Local", IPFamilyPolicy: require, HealthCheckNodePort: 30006, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30007}},
	}))
	for _, test := range []struct {
		name string
		spec corev1.ServiceSpec
		want string
	}{
		{"address", corev1.ServiceSpec{ClusterIP: "10.96.0.1"}, `spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to allocate IP 10.96.0.1: provided IP is already allocated`},
		{"second address", corev1.ServiceSpec{IPFamilyPolicy: require, ClusterIP: "10.96.0.5", ClusterIPs: []string{"10.96.0.5", "fd00:10:96::1"}},
			`spec.clusterIPs: Invalid value: ["10.96.0.5","fd00:10:96::1"]: failed to allocate IP fd00:10:96::1: provided IP is already allocated`},
		{"node port", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30007}}}, `spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated`},
		{"second node port", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30005}, {Name: "b", Port: 81, NodePort: 30007}}},
			`spec.ports[1].nodePort: Invalid value: 30007: provided port is already allocated`},
		{"node port is a health check port", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30006}}},
			`spec.ports[0].nodePort: Invalid value: 30006: provided port is already allocated`},
		{"invalid for another reason", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 0, NodePort: 30005}}},
			`[spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.spec.Ports) == 0 {
				test.spec.Ports = web()
			}
			for _, dry := range []bool{true, false} {
				if got := result(c.tryCreate(named("other", test.spec), dry)); got != test.want {
					t.Errorf("dry run %v:\n got %s\nwant %s", dry, got, test.want)
				}
				c.checkPools()
			}
		})
	}
	t.Run("same name", func(t *testing.T) {
		if _, err := c.tryCreate(named("web", corev1.ServiceSpec{Type: "NodePort", Ports: web()}), false); !apierrors.IsAlreadyExists(err) {
			t.Errorf("got %v", err)
		}
		c.checkPools()
	})
}

func TestFullRanges(t *testing.T) {
	c := newClusterOf(t, tinyConfig())
	for i := range 6 {
		c.create(named(fmt.Sprintf("ip-%d", i), corev1.ServiceSpec{Ports: web()}))
	}
	full := `Internal error occurred: failed to allocate a serviceIP for Service "more": range is full`
	if got := result(c.tryCreate(named("more", corev1.ServiceSpec{Ports: web()}), false)); got != full {
		t.Errorf("got %s", got)
	}
	// The first family of this one is free, the second is not.
	dual := corev1.ServiceSpec{IPFamilyPolicy: require, IPFamilies: families("IPv6"), Ports: web()}
	if got := result(c.tryCreate(named("more", dual), false)); got != full {
		t.Errorf("dual-stack: got %s", got)
	}
	c.checkPools()

	if err := c.tryDelete("ip-3", true); err != nil {
		t.Fatal(err)
	}
	if got := result(c.tryCreate(named("more", corev1.ServiceSpec{Ports: web()}), false)); got != full {
		t.Errorf("after a dry run of a delete: got %s", got)
	}
	if err := c.tryDelete("ip-3", false); err != nil {
		t.Fatal(err)
	}
	if got, want := result(c.tryCreate(named("more", corev1.ServiceSpec{Ports: web()}), false)), "SingleStack IPv4 10.96.0.4"; got != want {
		t.Errorf("after a delete: got %s, want %s", got, want)
	}

	ports := make([]corev1.ServicePort, 9)
	for i := range ports {
		ports[i] = corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(i + 1)}
	}
	spec := corev1.ServiceSpec{Type: "NodePort", IPFamilies: families("IPv6"), Ports: ports}
	if got, want := result(c.tryCreate(named("ports", spec), false)), "Internal error occurred: failed to allocate a nodePort: range is full"; got != want {
		t.Errorf("got %s", got)
	}
	c.checkPools()
	spec.Ports = ports[:8]
	c.create(named("ports", spec))
	local := corev1.ServiceSpec{
		Type: "LoadBalancer", ExternalTrafficPolicy: "Local", AllocateLoadBalancerNodePorts: ptr.To(false), IPFamilies: families("IPv6"), Ports: web(),
	}
	if got, want := result(c.tryCreate(named("local", local), false)), "Internal error occurred: failed to allocate a HealthCheck NodePort: range is full"; got != want {
		t.Errorf("got %s", got)
	}
	c.checkPools()
}

func TestGenerateName(t *testing.T) {
	c := newCluster(t, range4)
	service := named("", corev1.ServiceSpec{Ports: web()})
	service.GenerateName = "web-"
	created := c.create(service)
	if !strings.HasPrefix(created.Name, "web-") || created.UID == "" {
		t.Errorf("got %s, uid %q", created.Name, created.UID)
	}
	c.checkPools()
}
