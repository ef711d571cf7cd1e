// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import "testing"

const webService = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}`

func TestEndpoints(t *testing.T) {
	runScenarios(t, []scenario{
		{"life of pods", []step{
			{name: "a Service without pods", do: func(w *world) { w.create(webService) }},
			{name: "pods without addresses", do: func(w *world) { w.pods(pod{name: "a"}, pod{name: "b", node: "n3"}) }},
			{name: "they get addresses", do: func(w *world) {
				w.setStatus(pod{name: "a", ips: "10.1.0.1"}, pod{name: "b", ips: "10.1.0.2"})
			}},
			{name: "one becomes ready", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.1", ready: true}) }},
			{name: "the other becomes ready", do: func(w *world) { w.setStatus(pod{name: "b", ips: "10.1.0.2", ready: true}) }},
			{name: "one becomes unready", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.1"}) }},
			{name: "its address changes", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.9", ready: true}) }},
			{name: "a third, without node, is pending", do: func(w *world) { w.pods(pod{name: "c", node: "-", phase: "Pending"}) }},
			{name: "one succeeds", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.9", phase: "Succeeded"}) }},
			{name: "one fails", do: func(w *world) { w.setStatus(pod{name: "b", ips: "10.1.0.2", phase: "Failed"}) }},
			{name: "all are deleted", do: func(w *world) { w.delete("Pod", "a", "b", "c") }},
		}},
		{"terminating pods", []step{
			{name: "two ready pods and one unready", do: func(w *world) {
				w.create(webService)
				w.pods(
					pod{name: "a", ips: "10.1.0.1", ready: true, finalizer: true},
					pod{name: "b", ips: "10.1.0.2", ready: true, node: "n2"},
					pod{name: "c", ips: "10.1.0.3", finalizer: true},
				)
			}},
			{name: "a ready one terminates", do: func(w *world) { w.terminate("a") }},
			{name: "it becomes unready meanwhile", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.1"}) }},
			{name: "the unready one terminates", do: func(w *world) { w.terminate("c") }},
			{name: "not ready addresses are published", do: func(w *world) {
				w.patch("Service", "web", `{spec: {publishNotReadyAddresses: true}}`)
			}},
			{name: "the last one terminates too", do: func(w *world) { w.terminate("b") }},
			{name: "not ready addresses are no longer published", do: func(w *world) {
				w.patch("Service", "web", `{spec: {publishNotReadyAddresses: false}}`)
			}},
			{name: "a finalizer is removed", do: func(w *world) {
				w.patch("Pod", "a", `{metadata: {finalizers: null}}`)
				w.delete("Pod", "a")
			}},
			{name: "a terminating pod succeeds", do: func(w *world) { w.setStatus(pod{name: "b", ips: "10.1.0.2", phase: "Succeeded"}) }},
		}},
		{"named ports", []step{
			{name: "pods whose port of that name differs", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: web}]}}`)
				w.pods(
					pod{name: "a", ips: "10.1.0.1", ready: true, ports: []any{port("web", 80)}},
					pod{name: "b", ips: "10.1.0.2", ready: true, ports: []any{port("web", 8080), port("other", 9090)}},
					pod{name: "c", ips: "10.1.0.3", ready: true, ports: []any{port("other", 80)}},
					pod{name: "d", ips: "10.1.0.4", ports: []any{port("web", 80)}},
					pod{name: "e", ips: "10.1.0.5", ready: true, ports: []any{port("web", 80, "UDP")}},
				)
			}},
			{name: "a second port", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: [{name: web, port: 80, targetPort: web}, {name: other, port: 90, targetPort: other, appProtocol: kubernetes.io/h2c}]}}`)
			}},
			{name: "a port of another protocol", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: [{name: web, port: 80, targetPort: web}, {name: dns, port: 80, targetPort: web, protocol: UDP}, {name: sctp, port: 81, protocol: SCTP}]}}`)
			}},
			{name: "ports by number", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: [{name: z, port: 80, targetPort: 1234}, {name: a, port: 81}]}}`)
			}},
			{name: "a name that no pod has", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ports: [{port: 80, targetPort: nowhere}]}}`)
			}},
		}},
		{"selectors", []step{
			{name: "pods of two versions", do: func(w *world) {
				w.create(webService)
				w.pods(
					pod{name: "a", ips: "10.1.0.1", ready: true, labels: map[string]string{"app": "web", "version": "1"}},
					pod{name: "b", ips: "10.1.0.2", ready: true, labels: map[string]string{"app": "web", "version": "2"}},
					pod{name: "c", ips: "10.1.0.3", ready: true, labels: map[string]string{"app": "other"}},
				)
			}},
			{name: "a narrower selector", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: {version: "1"}}}`) }},
			{name: "a pod changes its labels", do: func(w *world) { w.patch("Pod", "b", `{metadata: {labels: {version: "1"}}}`) }},
			{name: "another selector", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: {app: other, version: null}}}`) }},
			{name: "a selector of no pod", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: {app: none}}}`) }},
			{name: "no selector: what there is stays", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: null}}`) }},
			{name: "pods come and go meanwhile", do: func(w *world) { w.delete("Pod", "a") }},
			{name: "a selector again", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: {app: web}}}`) }},
			{name: "no selector, with endpoints", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: null}}`) }},
			{name: "a second Service with the same pods", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: second}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
			}},
			{name: "the Services are deleted", do: func(w *world) { w.delete("Service", "web", "second") }},
			{name: "a Service of the same name", do: func(w *world) { w.create(webService) }},
		}},
		{"labels and annotations", []step{
			{name: "of a new Service", do: func(w *world) {
				w.pods(pod{name: "a", ips: "10.1.0.1", ready: true})
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web, labels: {a: "1", b: "2"}, annotations: {note: x, topologyKeys: '["zone1"]'}}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
			}},
			{name: "a changed one, a removed one, a new one", do: func(w *world) {
				w.patch("Service", "web", `{metadata: {labels: {a: "3", b: null, c: "4"}, annotations: {note: z}}}`)
			}},
			{name: "reserved ones", do: func(w *world) {
				w.patch("Service", "web", `{metadata: {labels: {service.kubernetes.io/headless: "", endpointslice.kubernetes.io/managed-by: me, kubernetes.io/service-name: other}}}`)
			}},
			// kube-controller-manager corrects them with the next change of the Service or a pod.
			{name: "on Endpoints, by somebody else", do: func(w *world) {
				w.patch("Endpoints", "web", `{metadata: {labels: {mine: "1", a: "9"}, annotations: {mine: "1"}}}`)
				w.patch("Service", "web", `{metadata: {labels: {then: x}}}`)
			}},
			{name: "no subsets, by somebody else", do: func(w *world) {
				w.patch("Endpoints", "web", `{subsets: null}`)
				w.patch("Service", "web", `{metadata: {labels: {then: z}}}`)
			}},
			{name: "a slice, by somebody else", do: func(w *world) { w.spoilSlices("web") }},
			{name: "a pod becomes unready", do: func(w *world) { w.setStatus(pod{name: "a", ips: "10.1.0.1"}) }},
			{name: "a label of the Service changes", do: func(w *world) { w.patch("Service", "web", `{metadata: {labels: {a: "5"}}}`) }},
			{name: "the Endpoints are deleted by somebody else", do: func(w *world) { w.delete("Endpoints", "web") }},
		}},
		{"host names", []step{
			{name: "of pods with the subdomain of the Service", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}}`)
				w.pods(
					pod{name: "a", ips: "10.1.0.1", ready: true, hostname: "one", subdomain: "web"},
					pod{name: "b", ips: "10.1.0.2", hostname: "two", subdomain: "web"},
					pod{name: "c", ips: "10.1.0.3", ready: true, hostname: "three", subdomain: "elsewhere"},
					pod{name: "d", ips: "10.1.0.4", ready: true, hostname: "four"},
					pod{name: "e", ips: "10.1.0.5", ready: true, subdomain: "web"},
				)
			}},
		}},
	})
}

func TestHeadlessServices(t *testing.T) {
	runScenarios(t, []scenario{
		{"without ports", []step{
			{name: "with pods", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, selector: {app: web}}}`)
				w.pods(pod{name: "a", ips: "10.1.0.1", ready: true}, pod{name: "b", ips: "10.1.0.2", node: "n3"})
			}},
			{name: "a port is added", do: func(w *world) { w.patch("Service", "web", `{spec: {ports: [{port: 80}]}}`) }},
			{name: "a named port", do: func(w *world) { w.patch("Service", "web", `{spec: {ports: [{port: 80, targetPort: web}]}}`) }},
			{name: "no port again", do: func(w *world) { w.patch("Service", "web", `{spec: {ports: null}}`) }},
			{name: "no pods", do: func(w *world) { w.delete("Pod", "a", "b") }},
		}},
		{"to and fro", []step{
			{name: "an ordinary Service", do: func(w *world) {
				w.create(webService)
				w.pods(pod{name: "a", ips: "10.1.0.1", ready: true})
			}},
			{name: "cannot become headless", refused: true, do: func(w *world) {
				w.patch("Service", "web", `{spec: {clusterIP: None, clusterIPs: [None]}}`)
			}},
			{name: "is deleted, and made again without ClusterIP", do: func(w *world) {
				w.delete("Service", "web")
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web, labels: {a: b}}, spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}}`)
			}},
			{name: "is deleted, and made again with one", do: func(w *world) {
				w.delete("Service", "web")
				w.create(webService)
			}},
		}},
		{"without selector", []step{
			{name: "without Endpoints", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, ports: [{port: 80}]}}`)
			}},
			{name: "with Endpoints", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Endpoints, metadata: {name: web}, subsets: [{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}]}`)
			}},
		}},
	})
}

func TestDualStack(t *testing.T) {
	service := func(policy, rest string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ipFamilyPolicy: ` + policy + `, selector: {app: web}, ports: [{port: 80}]` + rest + `}}`
	}
	pods := func(w *world) {
		w.pods(
			pod{name: "a", ips: "10.1.0.1 fd00:1::1", ready: true},
			pod{name: "b", ips: "10.1.0.2", ready: true, node: "n2"},
			pod{name: "c", ips: "fd00:1::3", ready: true, node: "n3"},
			pod{name: "d", ips: "fd00:1::4 10.1.0.4", node: "n4"},
		)
	}
	runScenarios(t, []scenario{
		{"SingleStack", []step{
			{name: "created", do: func(w *world) { pods(w); w.create(service("SingleStack", "")) }},
			{name: "becomes PreferDualStack", do: func(w *world) { w.patch("Service", "web", `{spec: {ipFamilyPolicy: PreferDualStack}}`) }},
			{name: "becomes SingleStack", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ipFamilyPolicy: SingleStack}}`)
			}},
			{name: "becomes RequireDualStack", do: func(w *world) {
				w.patch("Service", "web", `{spec: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv6]}}`)
			}},
			{name: "its primary family cannot change", refused: true, do: func(w *world) {
				w.patch("Service", "web", `{spec: {ipFamilies: [IPv6, IPv4]}}`)
			}},
			{name: "its second family goes", do: func(w *world) {
				w.update("Service", "web", func(o map[string]any) {
					spec := o["spec"].(map[string]any)
					spec["ipFamilyPolicy"] = "SingleStack"
					spec["ipFamilies"] = spec["ipFamilies"].([]any)[:1]
					spec["clusterIPs"] = spec["clusterIPs"].([]any)[:1]
				})
			}},
		}},
		{"PreferDualStack", []step{
			{name: "created", do: func(w *world) { pods(w); w.create(service("PreferDualStack", "")) }},
			{name: "a pod gets its second address", do: func(w *world) { w.setStatus(pod{name: "b", ips: "10.1.0.2 fd00:1::2", ready: true}) }},
			{name: "pods go", do: func(w *world) { w.delete("Pod", "a", "c") }},
		}},
		{"RequireDualStack", []step{
			{name: "created, IPv6 first", do: func(w *world) { pods(w); w.create(service("RequireDualStack", ", ipFamilies: [IPv6, IPv4]")) }},
			{name: "headless beside it", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: headless}, spec: {clusterIP: None, ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80}]}}`)
			}},
		}},
		{"IPv6 only", []step{
			{name: "by family", do: func(w *world) { pods(w); w.create(service("SingleStack", ", ipFamilies: [IPv6]")) }},
			{name: "by address", do: func(w *world) {
				w.delete("Service", "web")
				w.create(service("SingleStack", `, clusterIP: "fd00:10:96::12"`))
			}},
			{name: "headless", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: headless}, spec: {clusterIP: None, ipFamilies: [IPv6], selector: {app: web}, ports: [{port: 80}]}}`)
			}},
		}},
		{"headless", []step{
			{name: "with selector", do: func(w *world) {
				pods(w)
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}}`)
			}},
			{name: "becomes PreferDualStack", do: func(w *world) { w.patch("Service", "web", `{spec: {ipFamilyPolicy: PreferDualStack}}`) }},
			{name: "becomes SingleStack", do: func(w *world) { w.patch("Service", "web", `{spec: {ipFamilyPolicy: SingleStack}}`) }},
			{name: "without selector", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: bare}, spec: {clusterIP: None, ports: [{port: 80}]}}`)
			}},
			{name: "without selector, one family", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Service, metadata: {name: bare-single}, spec: {clusterIP: None, ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}`)
			}},
		}},
		{"refused", []step{
			{name: "bad families", refused: true, do: func(w *world) {
				w.create(service("SingleStack", ", ipFamilies: [IPv4, IPv6]"))
				w.create(service("PreferDualStack", ", ipFamilies: [IPv4, IPv4]"))
				w.create(service("PreferDualStack", ", ipFamilies: [IPv5]"))
				w.create(service("Sometimes", ""))
				w.create(service("SingleStack", ", ipFamilies: [IPv6], clusterIP: 10.96.0.20"))
				w.create(service("RequireDualStack", ", clusterIPs: [10.96.0.20, 10.96.0.21]"))
				w.create(service("RequireDualStack", ", clusterIP: 10.96.0.20, clusterIPs: [10.96.0.21]"))
			}},
		}},
	})
}
