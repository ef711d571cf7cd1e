// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// service is a Service named web with the selector app=web and one port, with more fields of its spec.
func service(spec string) string { return serviceNamed("web", spec) }

func serviceNamed(name, spec string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: ` + name + `}, spec: {selector: {app: web}, ports: [{name: http, port: 80}], ` + spec + `}}`
}

// onePod is a ready pod that the Services select.
func onePod(w *world) { w.pods(pod{name: "a", ips: "10.1.0.1", ready: true}) }

func TestServiceTypes(t *testing.T) {
	runScenarios(t, []scenario{
		{"ExternalName", []step{
			// A slice that is there when the Service becomes an ExternalName stays, so it has to be there on both sides.
			{name: "ClusterIP", do: func(w *world) {
				onePod(w)
				w.create(service(""))
			}},
			{name: "from ClusterIP", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: ExternalName, externalName: example.org}}`)
			}},
			{name: "a pod comes meanwhile", do: func(w *world) { w.pods(pod{name: "b", ips: "10.1.0.2", ready: true}) }},
			{name: "back, with the name", do: func(w *world) { w.patch("Service", "web", `{spec: {type: ClusterIP}}`) }},
			{name: "to it, without selector", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: ExternalName, externalName: example.org, selector: null}}`)
			}},
			{name: "to NodePort", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: NodePort, externalName: null, selector: {app: web}}}`)
			}},
			{name: "to it, with another name", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: ExternalName, externalName: example.com}}`)
			}},
			{name: "created, without ports", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: second}, spec: {type: ExternalName, externalName: example.org}}`)
			}},
			{name: "created, with ports and selector", do: func(w *world) {
				w.create(serviceNamed("third", "type: ExternalName, externalName: example.org"))
			}},
			{name: "becomes headless", do: func(w *world) {
				w.patch("Service", "third", `{spec: {type: ClusterIP, clusterIP: None}}`)
			}},
			{name: "an address is none of its fields", refused: true, do: func(w *world) {
				w.create(serviceNamed("fourth", "type: ExternalName, externalName: example.org, clusterIP: 10.96.0.9"))
				w.create(serviceNamed("fourth", "type: ExternalName"))
				w.create(serviceNamed("fourth", "type: ExternalName, externalName: '-bad-'"))
			}},
		}},
		{"NodePort", []step{
			{name: "created", do: func(w *world) { onePod(w); w.create(service("type: NodePort")) }},
			{name: "an unrelated change keeps the port", do: func(w *world) { w.patch("Service", "web", `{metadata: {labels: {a: b}}}`) }},
			{name: "a port is added", do: func(w *world) {
				w.strategic("Service", "web", `{spec: {ports: [{name: https, port: 443}]}}`)
			}},
			{name: "a port is removed", do: func(w *world) {
				w.strategic("Service", "web", `{spec: {ports: [{port: 443, $patch: delete}]}}`)
			}},
			{name: "a port changes its number", do: func(w *world) { w.patch("Service", "web", `{spec: {ports: [{name: http, port: 81}]}}`) }},
			{name: "replaced without node port and address", do: func(w *world) { w.replace(service("type: NodePort")) }},
			{name: "a node port by request", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: [{name: http, port: 80, nodePort: 30010}]}}`)
			}},
			{name: "one node port of two protocols", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: dns}, spec: {type: NodePort, ports: [{name: udp, port: 53, protocol: UDP, nodePort: 30011}, {name: tcp, port: 53, nodePort: 30011}]}}`)
			}},
			{name: "to ClusterIP", do: func(w *world) { w.patch("Service", "web", `{spec: {type: ClusterIP}}`) }},
			{name: "to NodePort, the port by request again", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: NodePort, ports: [{name: http, port: 80, nodePort: 30010}]}}`)
			}},
			{name: "the policy Local", do: func(w *world) { w.patch("Service", "web", `{spec: {externalTrafficPolicy: Local}}`) }},
			{name: "internal too", do: func(w *world) { w.patch("Service", "web", `{spec: {internalTrafficPolicy: Local}}`) }},
			{name: "to ClusterIP, the policy goes", do: func(w *world) {
				w.patch("Service", "web", `{spec: {type: ClusterIP, externalTrafficPolicy: null, ports: [{name: http, port: 80, nodePort: null}]}}`)
			}},
		}},
		{"LoadBalancer", []step{
			{name: "created", do: func(w *world) { onePod(w); w.create(service("type: LoadBalancer")) }},
			{name: "gets an address", do: func(w *world) {
				w.patchAs(types.MergePatchType, "Service", "web", `{status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, "status")
			}},
			{name: "its status is not written with its spec", do: func(w *world) {
				w.patch("Service", "web", `{status: {loadBalancer: {ingress: [{ip: 192.0.2.2}]}}, spec: {sessionAffinity: ClientIP}}`)
			}},
			{name: "the policy Local, with a health check port", do: func(w *world) { w.patch("Service", "web", `{spec: {externalTrafficPolicy: Local}}`) }},
			{name: "an unrelated change keeps that port", do: func(w *world) { w.patch("Service", "web", `{metadata: {labels: {a: b}}}`) }},
			{name: "the policy Cluster", do: func(w *world) { w.patch("Service", "web", `{spec: {externalTrafficPolicy: Cluster}}`) }},
			{name: "to ClusterIP: the status goes", do: func(w *world) { w.patch("Service", "web", `{spec: {type: ClusterIP}}`) }},
			{name: "without node ports", do: func(w *world) {
				w.create(serviceNamed("second", "type: LoadBalancer, allocateLoadBalancerNodePorts: false"))
			}},
			{name: "with them after all", do: func(w *world) { w.patch("Service", "second", `{spec: {allocateLoadBalancerNodePorts: true}}`) }},
			{name: "without them again, they stay", do: func(w *world) { w.patch("Service", "second", `{spec: {allocateLoadBalancerNodePorts: false}}`) }},
			{name: "of a class, with ranges and an address", do: func(w *world) {
				w.create(serviceNamed("third", "type: LoadBalancer, loadBalancerClass: lab.example/x, loadBalancerIP: 192.0.2.9, loadBalancerSourceRanges: [192.0.2.0/24], externalIPs: [192.0.2.10]"))
			}},
			{name: "to ClusterIP: the class must go too", do: func(w *world) {
				w.patch("Service", "third", `{spec: {type: ClusterIP, loadBalancerSourceRanges: null}}`)
			}},
			{name: "with a health check port by request", do: func(w *world) {
				w.create(serviceNamed("fourth", "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30012"))
			}},
			{name: "fields that cannot change", refused: true, do: func(w *world) {
				w.patch("Service", "fourth", `{spec: {healthCheckNodePort: 30013}}`)
				w.patch("Service", "fourth", `{spec: {loadBalancerClass: lab.example/y}}`)
			}},
		}},
		{"fields", []step{
			{name: "session affinity", do: func(w *world) { onePod(w); w.create(service("sessionAffinity: ClientIP")) }},
			{name: "its timeout", do: func(w *world) {
				w.patch("Service", "web", `{spec: {sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}}}`)
			}},
			{name: "no session affinity", do: func(w *world) {
				w.patch("Service", "web", `{spec: {sessionAffinity: None, sessionAffinityConfig: null}}`)
			}},
			{name: "session affinity by another type of patch", do: func(w *world) { w.strategic("Service", "web", `{spec: {sessionAffinity: ClientIP}}`) }},
			{name: "a JSON patch", do: func(w *world) {
				w.json("Service", "web", `[{"op": "replace", "path": "/spec/ports/0/port", "value": 8080}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]`)
			}},
			{name: "external addresses", do: func(w *world) { w.patch("Service", "web", `{spec: {externalIPs: [192.0.2.7, 2001:db8::7]}}`) }},
			{name: "an application protocol", do: func(w *world) {
				w.strategic("Service", "web", `{spec: {ports: [{port: 8080, appProtocol: https}]}}`)
			}},
			{name: "the internal policy", do: func(w *world) { w.patch("Service", "web", `{spec: {internalTrafficPolicy: Local}}`) }},
			{name: "without a type of anything", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {generateName: x-, name: bare}, spec: {ports: [{port: 1}]}}`)
			}},
		}},
		{"traffic distribution", []step{
			{name: "pods in two zones", do: func(w *world) {
				w.create(service("trafficDistribution: PreferClose"))
				w.pods(
					pod{name: "a", ips: "10.1.0.1", ready: true, node: "n1"}, pod{name: "b", ips: "10.1.0.2", ready: true, node: "n2"},
					pod{name: "c", ips: "10.1.0.3", ready: true, node: "n3"}, pod{name: "d", ips: "10.1.0.4", node: "n4"},
				)
			}},
			{name: "the same node", do: func(w *world) { w.patch("Service", "web", `{spec: {trafficDistribution: PreferSameNode}}`) }},
			{name: "the same zone", do: func(w *world) { w.patch("Service", "web", `{spec: {trafficDistribution: PreferSameZone}}`) }},
			{name: "anywhere", do: func(w *world) { w.patch("Service", "web", `{spec: {trafficDistribution: null}}`) }},
			{name: "the older annotation", do: func(w *world) {
				w.patch("Service", "web", `{metadata: {annotations: {service.kubernetes.io/topology-mode: Auto}}}`)
			}},
			{name: "with enough pods", do: func(w *world) {
				for i := range 8 {
					w.pods(pod{name: fmt.Sprintf("more-%d", i), ips: fmt.Sprintf("10.1.1.%d", i+1), ready: true, node: fmt.Sprintf("n%d", i%4+1)})
				}
			}},
			{name: "a zone loses its pods", do: func(w *world) { w.delete("Pod", "a", "b", "more-0", "more-1", "more-4", "more-5") }},
			{name: "without the annotation", do: func(w *world) {
				w.patch("Service", "web", `{metadata: {annotations: {service.kubernetes.io/topology-mode: null}}}`)
			}},
		}},
	})
}

func TestServiceAddresses(t *testing.T) {
	runScenarios(t, []scenario{
		{"allocation", []step{
			{name: "by request", do: func(w *world) {
				w.create(serviceNamed("one", "clusterIP: 10.96.0.40"), serviceNamed("both", `clusterIP: 10.96.0.41, clusterIPs: [10.96.0.41, "fd00:10:96::41"], ipFamilyPolicy: RequireDualStack`))
			}},
			{name: "taken, outside, malformed", refused: true, do: func(w *world) {
				w.create(
					serviceNamed("two", "clusterIP: 10.96.0.40"), serviceNamed("two", "clusterIP: 10.97.0.40"),
					serviceNamed("two", "clusterIP: nonsense"), serviceNamed("two", "clusterIP: 010.096.0.50"),
					serviceNamed("two", `clusterIPs: [10.96.0.42], ipFamilyPolicy: SingleStack`), serviceNamed("two", `clusterIP: 10.96.0.45, clusterIPs: [10.96.0.45, "fd00:10:96::41"], ipFamilyPolicy: RequireDualStack`),
					serviceNamed("two", "clusterIP: 10.96.0.0"), serviceNamed("two", "clusterIP: 10.96.255.255"),
				)
			}},
			{name: "an address with a node port that is taken", refused: true, do: func(w *world) {
				w.create(serviceNamed("two", "clusterIP: 10.96.0.42, type: NodePort, ports: [{port: 80, nodePort: 30019}, {name: x, port: 81, nodePort: 30019}]"))
			}},
			{name: "what a refused request took is free", do: func(w *world) { w.create(serviceNamed("two", "clusterIP: 10.96.0.42")) }},
			{name: "cannot change", refused: true, do: func(w *world) {
				w.patch("Service", "two", `{spec: {clusterIP: 10.96.0.43}}`)
				w.patch("Service", "two", `{spec: {clusterIP: 10.96.0.43, clusterIPs: [10.96.0.43]}}`)
				w.patch("Service", "two", `{spec: {clusterIPs: [10.96.0.43]}}`)
			}},
			{name: "a replacement without it keeps it", do: func(w *world) { w.replace(serviceNamed("two", "")) }},
			{name: "a patch that clears it", do: func(w *world) { w.patch("Service", "two", `{spec: {clusterIP: "", clusterIPs: null}}`) }},
			{name: "is free after a deletion", do: func(w *world) {
				w.delete("Service", "one")
				w.create(serviceNamed("three", "clusterIP: 10.96.0.40"))
			}},
			{name: "a dry run takes nothing", do: func(w *world) {
				w.dryRun = []string{"All"}
				w.create(serviceNamed("four", "clusterIP: 10.96.0.44, type: NodePort"))
				w.dryRun = nil
				w.create(serviceNamed("four", "clusterIP: 10.96.0.44"))
			}},
			{name: "a dry run of a change", do: func(w *world) {
				w.dryRun = []string{"All"}
				w.patch("Service", "four", `{spec: {type: NodePort, ports: [{port: 80, nodePort: 30020}]}}`)
				w.delete("Service", "four")
				w.dryRun = nil
				w.create(serviceNamed("five", "type: NodePort, ports: [{port: 80, nodePort: 30020}]"))
			}},
			{name: "a node port that is taken, or out of range", refused: true, do: func(w *world) {
				w.create(serviceNamed("six", "type: NodePort, ports: [{port: 80, nodePort: 30020}]"))
				w.create(serviceNamed("six", "type: NodePort, ports: [{port: 80, nodePort: 80}]"))
				w.create(serviceNamed("six", "type: NodePort, ports: [{name: a, port: 80, nodePort: 30021}, {name: b, port: 81, nodePort: 30021}]"))
				w.create(serviceNamed("six", "ports: [{port: 80, nodePort: 30021}]"))
			}},
		}},
	})
}

func TestServiceValidation(t *testing.T) {
	runScenarios(t, []scenario{
		{"of new Services", []step{{name: "refused", refused: true, do: func(w *world) {
			for _, text := range []string{
				`metadata: {name: Web}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: -web}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web.web}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web, labels: {"bad key": x}}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web, labels: {a: "bad value"}}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web, annotations: {"bad key": x}}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web, finalizers: [bad]}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web, namespace: elsewhere}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web}`,
				`metadata: {name: web}, spec: {}`,
				`metadata: {name: web}, spec: {ports: []}`,
				`metadata: {name: web}, spec: {ports: [{}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 0}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 65536}]}`,
				`metadata: {name: web}, spec: {ports: [{port: -1, protocol: ICMP}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 80}, {port: 81}]}`,
				`metadata: {name: web}, spec: {ports: [{name: a, port: 80}, {name: a, port: 81}]}`,
				`metadata: {name: web}, spec: {ports: [{name: A_B, port: 80}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 80, targetPort: "80"}]}`,
				`metadata: {name: web}, spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 80, targetPort: 70000}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 80, targetPort: "a name that is too long"}]}`,
				`metadata: {name: web}, spec: {ports: [{port: 80, appProtocol: "not valid"}]}`,
				`metadata: {name: web}, spec: {type: Other, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {selector: {"bad key": x, b: "bad value"}, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {sessionAffinity: Sometimes, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {externalIPs: [127.0.0.1, nonsense, 0.0.0.0], ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {externalTrafficPolicy: Local, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {type: NodePort, externalTrafficPolicy: Other, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {internalTrafficPolicy: Other, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {trafficDistribution: Far, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {healthCheckNodePort: 30050, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {loadBalancerClass: x, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {type: LoadBalancer, loadBalancerClass: "bad class", ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {type: LoadBalancer, loadBalancerSourceRanges: [nonsense, 10.0.0.1/33], ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {loadBalancerSourceRanges: [10.0.0.0/8], ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {allocateLoadBalancerNodePorts: true, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {type: LoadBalancer, clusterIP: None, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {type: NodePort, clusterIP: None, ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {clusterIPs: [None, 10.96.0.60], ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {clusterIP: None, clusterIPs: [10.96.0.60], ports: [{port: 80}]}`,
				`metadata: {name: web}, spec: {ports: eighty}`,
				`metadata: {name: web}, spec: {ports: [{port: "80"}]}`,
			} {
				w.create("{apiVersion: v1, kind: Service, " + text + "}")
			}
		}}}},
		{"what is accepted", []step{{name: "odd but valid", do: func(w *world) {
			for _, text := range []string{
				`metadata: {name: 1web}, spec: {ports: [{port: 80}]}`,
				`metadata: {name: web-1, labels: {a: ""}}, spec: {ports: [{name: a, port: 80}, {name: b, port: 80, protocol: UDP}]}`,
				`metadata: {name: web-2}, spec: {ports: [{name: 80-http, port: 80, targetPort: a-80}]}`,
				`metadata: {name: web-6}, spec: {sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}, ports: [{port: 80}]}`,
				`metadata: {name: web-3}, spec: {ports: [{port: 80, targetPort: 0}], clusterIP: ""}`,
				`metadata: {name: web-4, finalizers: [lab.example/hold]}, spec: {selector: {}, ports: [{port: 80}], externalName: example.org}`,
				`metadata: {name: web-5}, spec: {ports: [{port: 80}], clusterIP: None, publishNotReadyAddresses: true, sessionAffinity: ClientIP}`,
			} {
				w.create("{apiVersion: v1, kind: Service, " + text + "}")
			}
		}}}},
		{"of changes", []step{
			{name: "a Service", do: func(w *world) { w.create(service("")) }},
			{name: "refused", refused: true, do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: null}}`)
				w.patch("Service", "web", `{spec: {ports: [{port: 0}]}}`)
				w.patch("Service", "web", `{spec: {type: ExternalName}}`)
				w.patch("Service", "web", `{metadata: {resourceVersion: "1"}, spec: {selector: {a: b}}}`)
				w.patch("Service", "web", `{metadata: {uid: other}}`)
				w.patch("Service", "web", `{metadata: {name: other}}`)
				w.patch("Service", "none", `{metadata: {labels: {a: b}}}`)
				w.delete("Service", "none")
				w.create(service(""))
				w.json("Service", "web", `[{"op": "test", "path": "/spec/type", "value": "NodePort"}]`)
				w.json("Service", "web", `[{"op": "remove", "path": "/spec/nothing"}]`)
			}},
			{name: "a replacement of none makes it", do: func(w *world) { w.replace(serviceNamed("none", "")) }},
			{name: "unknown fields, strictly", refused: true, do: func(w *world) {
				w.strict(serviceNamed("strict", "nothing: 1"), serviceNamed("strict", "sessionAffinty: None, ports: [{port: 80, nam: x}]"))
			}},
		}},
		{"of Endpoints and EndpointSlices", []step{{name: "refused", refused: true, do: func(w *world) {
			for _, subsets := range []string{
				`[{}]`,
				`[{addresses: [{ip: nonsense}]}]`,
				`[{addresses: [{ip: 127.0.0.1}], ports: [{port: 80}]}]`,
				`[{addresses: [{ip: 10.1.0.1}], ports: [{port: 0}]}]`,
				`[{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}, {port: 81}]}]`,
				`[{addresses: [{ip: 10.1.0.1, hostname: "not valid", nodeName: "bad name"}], ports: [{name: A_B, port: 80, protocol: X}]}]`,
			} {
				w.create(`{apiVersion: v1, kind: Endpoints, metadata: {name: bad}, subsets: ` + subsets + `}`)
			}
			for _, rest := range []string{
				`endpoints: []`,
				`addressType: IPv5, endpoints: []`,
				`addressType: IPv4, endpoints: [{}]`,
				`addressType: IPv4, endpoints: [{addresses: []}]`,
				`addressType: IPv4, endpoints: [{addresses: ["fd00::1"]}]`,
				`addressType: IPv4, endpoints: [{addresses: [127.0.0.1]}]`,
				`addressType: FQDN, endpoints: [{addresses: [not_a_name]}]`,
				`addressType: IPv4, endpoints: [{addresses: [10.1.0.1], nodeName: "bad name", hostname: A_B}]`,
				`addressType: IPv4, endpoints: [], ports: [{name: A_B, port: 0, protocol: X}]`,
				`addressType: IPv4, endpoints: [], ports: [{name: a, port: 1}, {name: a, port: 2}]`,
				`addressType: IPv4, endpoints: [{addresses: [10.1.0.1], hints: {forZones: [{name: "not valid"}, {name: ""}]}}]`,
			} {
				w.create(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: bad}, ` + rest + `}`)
			}
		}}}},
	})
}

func TestServerSideApply(t *testing.T) {
	runScenarios(t, []scenario{
		{"of a Service", []step{
			{name: "created", do: func(w *world) { onePod(w); w.apply("one", false, service("")) }},
			{name: "applied again", do: func(w *world) { w.apply("one", false, service("")) }},
			{name: "a second manager adds", do: func(w *world) {
				w.apply("two", false, `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {a: b}}, spec: {ports: [{name: https, port: 443}]}}`)
			}},
			{name: "and is in conflict", refused: true, do: func(w *world) {
				w.apply("two", false, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: other}, ports: [{name: http2, port: 80}]}}`)
			}},
			{name: "and forces", do: func(w *world) {
				w.apply("two", true, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: other}, type: NodePort}}`)
			}},
			{name: "the first lets go", do: func(w *world) {
				w.apply("one", false, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}]}}`)
			}},
			{name: "an update takes over", do: func(w *world) {
				w.patch("Service", "web", `{spec: {selector: {app: web}}, metadata: {labels: {c: d}}}`)
			}},
			{name: "invalid", refused: true, do: func(w *world) {
				w.apply("one", false, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 0}]}}`)
				w.apply("one", false, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}], nothing: 1}}`)
				w.apply("one", false, `{apiVersion: v1, kind: Service, metadata: {name: web, managedFields: [{manager: x}]}}`)
			}},
		}},
	})
}
