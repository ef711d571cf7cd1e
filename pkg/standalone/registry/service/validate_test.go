// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func clientIP(seconds int32) *corev1.SessionAffinityConfig {
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(seconds)}}
}

// TestValidation creates Services. The changes are those of a client to a valid
// Service with one port, before defaulting.
func TestValidation(t *testing.T) {
	const (
		label     = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
		subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
		qualified = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	)
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		want   string
	}{
		{"valid", func(*corev1.Service) {}, ""},
		{"name begins with a digit", func(s *corev1.Service) { s.Name = "7web" }, ""},
		{"name with a dot", func(s *corev1.Service) { s.Name = "we.b" }, `metadata.name: Invalid value: "we.b": must not contain dots`},
		{"name", func(s *corev1.Service) { s.Name = "Web" }, `metadata.name: Invalid value: "Web": ` + label},
		{"no name", func(s *corev1.Service) { s.Name = "" }, `metadata.name: Required value: name or generateName is required`},
		{"label", func(s *corev1.Service) { s.Labels = map[string]string{"a b": "c"} }, `metadata.labels: Invalid value: "a b": ` + qualified},
		{"topology annotations differ", func(s *corev1.Service) {
			s.Annotations = map[string]string{corev1.DeprecatedAnnotationTopologyAwareHints: "Auto", corev1.AnnotationTopologyMode: "Disabled"}
		}, `metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "Disabled": must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified`},
		{"topology annotations of ours are not looked at", func(s *corev1.Service) {
			s.Annotations = map[string]string{"topologyKeys": "{", "superedge.io/topology-policy": "none"}
		}, ""},

		{"type", func(s *corev1.Service) { s.Spec.Type = "Ingress" }, `spec.type: Unsupported value: "Ingress": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`},
		{"no ports", func(s *corev1.Service) { s.Spec.Ports = nil }, `spec.ports: Required value`},
		{"headless without ports", func(s *corev1.Service) { s.Spec.Ports, s.Spec.ClusterIP = nil, "None" }, ""},
		{"headless node port", func(s *corev1.Service) { s.Spec.Type, s.Spec.ClusterIP = "NodePort", "None" }, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`},
		{"headless load balancer", func(s *corev1.Service) { s.Spec.Type, s.Spec.ClusterIP = "LoadBalancer", "None" }, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for LoadBalancer services`},

		{"two ports without names", func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Port: 80}, {Port: 81}} }, `[spec.ports[0].name: Required value, spec.ports[1].name: Required value]`},
		{"port name", func(s *corev1.Service) { s.Spec.Ports[0].Name = "HTTP" }, `spec.ports[0].name: Invalid value: "HTTP": ` + label},
		{"port names twice", func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "a", Port: 81}}
		}, `spec.ports[1].name: Duplicate value: "a"`},
		{"ports twice", func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 80, Protocol: "UDP"}, {Name: "c", Port: 80}}
		}, `spec.ports[2]: Duplicate value: {"protocol":"TCP","port":80,"targetPort":0}`},
		{"port range", func(s *corev1.Service) {
			s.Spec.Ports[0].Port, s.Spec.Ports[0].TargetPort = 65536, intstr.FromInt32(80)
		}, `spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive`},
		{"target port range", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(-1) }, `spec.ports[0].targetPort: Invalid value: -1: must be between 1 and 65535, inclusive`},
		{"target port name", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("a--b") }, `spec.ports[0].targetPort: Invalid value: "a--b": must not contain consecutive hyphens`},
		{"long target port name", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("abcdefghijklmnop") }, `spec.ports[0].targetPort: Invalid value: "abcdefghijklmnop": must be no more than 15 characters`},
		{"protocol", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "ICMP" }, `spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`},
		{"application protocol", func(s *corev1.Service) { s.Spec.Ports[0].AppProtocol = ptr.To("kubernetes.io/h2c") }, ""},
		{"malformed application protocol", func(s *corev1.Service) { s.Spec.Ports[0].AppProtocol = ptr.To("h2 c") }, `spec.ports[0].appProtocol: Invalid value: "h2 c": ` + qualified},
		{"node port of a ClusterIP Service", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30001 }, "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},

		{"selector", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "a b"} },
			`spec.selector: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"affinity", func(s *corev1.Service) { s.Spec.SessionAffinity = "Cookie" }, `spec.sessionAffinity: Unsupported value: "Cookie": supported values: "ClientIP", "None"`},
		{"affinity timeout", func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "ClientIP", clientIP(86400)
		}, ""},
		{"no affinity timeout", func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "ClientIP", clientIP(0)
		},
			`spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400`},
		{"long affinity timeout", func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "ClientIP", clientIP(86401)
		}, `spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400`},

		{"addresses", func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0" }, `spec.clusterIPs[0]: Invalid value: "10.96.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"leading zeros", func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.010" }, `spec.clusterIPs[0]: Invalid value: "10.96.0.010": must not have leading 0s`},
		{"None and more", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None", "10.96.0.1"}
		}, `spec.clusterIPs: Invalid value: ["None","10.96.0.1"]: 'None' must be the first and only value`},
		{"None behind an address", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1", "None"}
		}, `spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"three addresses", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1", "fd00:10:96::1", "10.96.0.2"}
		}, `spec.clusterIPs: Invalid value: ["10.96.0.1","fd00:10:96::1","10.96.0.2"]: may only hold up to 2 values`},
		{"two addresses of a family", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1", "10.96.0.2"}
		}, `spec.clusterIPs: Invalid value: ["10.96.0.1","10.96.0.2"]: may specify no more than one IP for each IP family`},
		{"address of another family", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.IPFamilies = "10.96.0.1", families("IPv6") },
			"spec.clusterIPs[0]: Invalid value: \"10.96.0.1\": expected an IPv6 value as indicated by `ipFamilies[0]`"},
		{"family", func(s *corev1.Service) { s.Spec.IPFamilies = families("IPv5") }, `spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`},
		{"family twice", func(s *corev1.Service) { s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = families("IPv4", "IPv4"), require }, `spec.ipFamilies[1]: Duplicate value: "IPv4"`},
		{"policy", func(s *corev1.Service) { s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicy("Both")) },
			`spec.ipFamilyPolicy: Unsupported value: "Both": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"`},

		{"external name", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = "ExternalName", "example.com." }, ""},
		{"no external name", func(s *corev1.Service) { s.Spec.Type = "ExternalName" }, `spec.externalName: Required value`},
		{"malformed external name", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = "ExternalName", "a_b" }, `spec.externalName: Invalid value: "a_b": ` + subdomain},
		{"external name with addresses", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = "ExternalName", "a", "10.96.0.1", families("IPv4"), single
		}, `[spec.clusterIPs: Forbidden: may not be set for ExternalName services, spec.ipFamilies: Forbidden: may not be set for ExternalName services, spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services]`},

		{"external IPs", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1", "2001:db8::1"} }, ""},
		{"malformed external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2"} }, `spec.externalIPs[0]: Invalid value: "192.0.2": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"unspecified external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1", "0.0.0.0"} }, `spec.externalIPs[1]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)`},
		{"loopback external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"127.0.0.1"} }, `spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`},
		{"link-local external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"fe80::1"} }, `spec.externalIPs[0]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`},
		{"multicast external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"224.0.0.1"} }, `spec.externalIPs[0]: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)`},

		{"source ranges", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerSourceRanges = "LoadBalancer", []string{"192.0.2.0/24", " 2001:db8::/32 "}
		}, ""},
		{"malformed source range", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerSourceRanges = "LoadBalancer", []string{"192.0.2.0"}
		},
			`spec.LoadBalancerSourceRanges[0]: Invalid value: "192.0.2.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		{"source ranges without a load balancer", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} },
			"spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"},
		{"source ranges by annotation", func(s *corev1.Service) {
			s.Spec.Type, s.Annotations = "LoadBalancer", map[string]string{sourceRangesAnnotation: "192.0.2.0/24, x"}
		}, `metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		{"source ranges by annotation without a load balancer", func(s *corev1.Service) {
			s.Annotations = map[string]string{sourceRangesAnnotation: ""}
		}, "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Forbidden: may only be used when `type` is 'LoadBalancer'"},
		{"class", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerClass = "LoadBalancer", ptr.To("example.com/lb")
		}, ""},
		{"malformed class", func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerClass = "LoadBalancer", ptr.To("l b") }, `spec.loadBalancerClass: Invalid value: "l b": ` + qualified},
		{"class without a load balancer", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("lb") }, "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"},
		{"load balancer's node ports without a load balancer", func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = ptr.To(true) },
			"spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'"},
		{"any load balancer address is allowed", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "somewhere" }, ""},

		{"external policy", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalTrafficPolicy = "NodePort", "Near" }, `spec.externalTrafficPolicy: Unsupported value: "Near": supported values: "Cluster", "Local"`},
		{"external policy of what is internal", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" }, `spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services`},
		{"external policy with external IPs", func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.ExternalIPs = "Local", []string{"192.0.2.1"}
		}, ""},
		{"internal policy", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicy("Near"))
		}, `spec.internalTrafficPolicy: Unsupported value: "Near": supported values: "Cluster", "Local"`},
		{"health check port without health checks", func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 30001 },
			"spec.healthCheckNodePort: Invalid value: 30001: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"},
		{"distribution", func(s *corev1.Service) { s.Spec.TrafficDistribution = ptr.To("PreferSameNode") }, ""},
		{"unknown distribution", func(s *corev1.Service) { s.Spec.TrafficDistribution = ptr.To("PreferNear") },
			`spec.trafficDistribution: Unsupported value: "PreferNear": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`},
		{"empty distribution", func(s *corev1.Service) { s.Spec.TrafficDistribution = ptr.To("") },
			`spec.trafficDistribution: Unsupported value: "": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, range4, range6)
			service := named("web", corev1.ServiceSpec{Ports: web()})
			test.change(service)
			_, err := c.tryCreate(service, false)
			if got := result(nil, orNone(err)); got != test.want && (test.want != "" || err != nil) {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			c.checkPools()
		})
	}
}

// TestValidationOfUndefaulted: what defaulting rules out.
func TestValidationOfUndefaulted(t *testing.T) {
	for _, test := range []struct {
		name string
		spec corev1.ServiceSpec
		want string
	}{
		{"nothing", corev1.ServiceSpec{Ports: web()}, `[spec.type: Required value, spec.ports[0].protocol: Required value, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive, spec.sessionAffinity: Required value]`},
		{"affinity without its config", corev1.ServiceSpec{Type: "ExternalName", ExternalName: "a", SessionAffinity: "ClientIP"},
			`spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP`},
		{"affinity without a client IP", corev1.ServiceSpec{Type: "ExternalName", ExternalName: "a", SessionAffinity: "ClientIP", SessionAffinityConfig: &corev1.SessionAffinityConfig{}},
			`spec.sessionAffinityConfig.clientIP: Required value: when session affinity type is ClientIP`},
		{"affinity without a timeout", corev1.ServiceSpec{
			Type: "ExternalName", ExternalName: "a", SessionAffinity: "ClientIP", SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{}},
		}, `spec.sessionAffinityConfig.clientIP.timeoutSeconds: Required value: when session affinity type is ClientIP`},
		{"config of no affinity", corev1.ServiceSpec{Type: "ExternalName", ExternalName: "a", SessionAffinity: "None", SessionAffinityConfig: clientIP(1)},
			`spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None`},
		{"load balancer", corev1.ServiceSpec{Type: "LoadBalancer", SessionAffinity: "None", ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP", TargetPort: intstr.FromInt32(80)}}},
			`[spec.clusterIPs: Required value, allocateLoadBalancerNodePorts: Required value, spec.externalTrafficPolicy: Required value, spec.internalTrafficPolicy: Required value]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := named("web", test.spec)
			if got := validateCreate(service).ToAggregate().Error(); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestValidationOfUpdates(t *testing.T) {
	for _, test := range []struct {
		name   string
		old    corev1.ServiceSpec
		change func(*corev1.Service)
		want   string
	}{
		{"class", corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: ptr.To("a")}, func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("b") },
			`spec.loadBalancerClass: Invalid value: "b": may not change once set`},
		{"class removed", corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: ptr.To("a")}, func(s *corev1.Service) { s.Spec.LoadBalancerClass = nil },
			`spec.loadBalancerClass: Invalid value: null: may not change once set`},
		{"class with the type", corev1.ServiceSpec{}, func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerClass = "LoadBalancer", ptr.To("b") }, ""},
		{"UID", corev1.ServiceSpec{}, func(s *corev1.Service) { s.UID = "other" }, `metadata.uid: Invalid value: "other": field is immutable`},
		{"ports removed", corev1.ServiceSpec{}, func(s *corev1.Service) { s.Spec.Ports = nil }, `spec.ports: Required value`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, range4, range6)
			test.old.Ports = web()
			c.create(named("web", test.old))
			_, err := c.tryPatch("web", test.change, false)
			if got := result(nil, orNone(err)); got != test.want && (test.want != "" || err != nil) {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			c.checkPools()
		})
	}
}

// TestOldValuesAreNotJudgedAnew: what a Service has already may stay, however
// the rules have changed since.
func TestOldValuesAreNotJudgedAnew(t *testing.T) {
	old := named("web", corev1.ServiceSpec{
		Type: "LoadBalancer", Ports: web(), ClusterIP: "010.96.0.5", ClusterIPs: []string{"010.96.0.5"}, IPFamilies: families("IPv4"), IPFamilyPolicy: single,
		ExternalIPs: []string{"192.0.2.001"}, LoadBalancerSourceRanges: []string{" 192.0.02.0/24"},
	})
	old.Annotations = map[string]string{sourceRangesAnnotation: "nonsense"}
	old.ResourceVersion = "1"
	SetDefaults(old)
	if errs := validateUpdate(old.DeepCopy(), old); len(errs) > 0 {
		t.Errorf("unchanged: %v", errs.ToAggregate())
	}
	old.Spec.LoadBalancerSourceRanges = nil
	if errs := validateUpdate(old.DeepCopy(), old); len(errs) > 0 {
		t.Errorf("unchanged, by annotation: %v", errs.ToAggregate())
	}
	changed := old.DeepCopy()
	changed.Spec.ExternalIPs = []string{"192.0.2.002"}
	if errs := validateUpdate(changed, old); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must not have leading 0s") {
		t.Errorf("changed: %v", errs.ToAggregate())
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		name    string
		service corev1.Service
		want    []string
	}{
		{name: "none", service: corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}}}},
		{
			name: "annotation",
			service: corev1.Service{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{corev1.DeprecatedAnnotationTopologyAwareHints: "Auto"},
			}},
			want: []string{"annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead"},
		},
		{
			name: "headless",
			service: corev1.Service{Spec: corev1.ServiceSpec{
				Type: "ClusterIP", ClusterIPs: []string{"None"}, LoadBalancerIP: "192.0.2.1", ExternalIPs: []string{"192.0.2.2"}, SessionAffinity: "ClientIP",
			}},
			want: []string{
				"spec.loadBalancerIP is ignored for headless services", "spec.externalIPs is ignored for headless services", "spec.SessionAffinity is ignored for headless services",
			},
		},
		{
			name: "unusual addresses",
			service: corev1.Service{Spec: corev1.ServiceSpec{
				ClusterIPs: []string{"FD00::1"}, ExternalIPs: []string{"2001:DB8::1"}, LoadBalancerIP: "2001:DB8::2", LoadBalancerSourceRanges: []string{"192.0.2.1/24"},
			}},
			want: []string{
				`spec.clusterIPs[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")`,
				`spec.externalIPs[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
				"spec.externalIPs is deprecated and may no longer be implemented in some clusters",
				`spec.loadBalancerIP: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")`,
				`spec.loadBalancerSourceRanges[0]: CIDR value "192.0.2.1/24" is ambiguous in this context (should be "192.0.2.0/24" or "192.0.2.1/32"?)`,
			},
		},
		{
			name:    "external IPs of an external name",
			service: corev1.Service{Spec: corev1.ServiceSpec{Type: "ExternalName", ExternalName: "a", ExternalIPs: []string{"192.0.2.1"}}},
			want:    []string{`spec.externalIPs is ignored when spec.type is "ExternalName"`},
		},
		{
			name:    "external name of another type",
			service: corev1.Service{Spec: corev1.ServiceSpec{Type: "ClusterIP", ExternalName: "a", TrafficDistribution: ptr.To("PreferClose")}},
			want: []string{
				`spec.externalName is ignored when spec.type is not "ExternalName"`, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`,
			},
		},
		{
			name: "status",
			service: corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
				Ingress: []corev1.LoadBalancerIngress{{Hostname: "a"}, {IP: "2001:DB8::1"}},
			}}},
			want: []string{`status.loadBalancer.ingress[1]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := append(warnings(&test.service), statusWarnings(&test.service)...)
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
