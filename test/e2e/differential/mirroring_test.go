// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"strings"
	"testing"
)

const bareService = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`

func endpoints(metadata, subsets string) string {
	return `{apiVersion: v1, kind: Endpoints, metadata: {name: web` + metadata + `}, subsets: ` + subsets + `}`
}

// TestHandMadeEndpoints is about Services without selector, whose Endpoints users make, and controllers mirror.
func TestHandMadeEndpoints(t *testing.T) {
	const one = `[{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}]`
	runScenarios(t, []scenario{
		{"mirrored", []step{
			{name: "a Service", do: func(w *world) { w.create(bareService) }},
			{name: "gets Endpoints", do: func(w *world) {
				w.create(endpoints(", labels: {a: b}, annotations: {c: d}", `[{addresses: [{ip: 10.1.0.1, nodeName: n1}, {ip: 10.1.0.2, hostname: two}], notReadyAddresses: [{ip: 10.1.0.3}], ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]}]`))
			}},
			{name: "an address more", do: func(w *world) {
				w.json("Endpoints", "web", `[{"op": "add", "path": "/subsets/0/addresses/-", "value": {"ip": "10.1.0.4", "targetRef": {"kind": "Pod", "name": "x"}}}]`)
			}},
			{name: "a label changes", do: func(w *world) { w.patch("Endpoints", "web", `{metadata: {labels: {a: z}}}`) }},
			{name: "two families", do: func(w *world) {
				w.patch("Endpoints", "web", `{subsets: [{addresses: [{ip: 10.1.0.1}, {ip: "fd00:1::1"}], ports: [{port: 80}]}]}`)
			}},
			{name: "two subsets", do: func(w *world) {
				w.patch("Endpoints", "web", `{subsets: [{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}, {addresses: [{ip: 10.1.0.2}], ports: [{port: 81, appProtocol: http}]}]}`)
			}},
			{name: "no subsets", do: func(w *world) { w.patch("Endpoints", "web", `{subsets: null}`) }},
			{name: "subsets again", do: func(w *world) { w.patch("Endpoints", "web", `{subsets: `+one+`}`) }},
			{name: "not to be mirrored", do: func(w *world) {
				w.patch("Endpoints", "web", `{metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: "true"}}}`)
			}},
			{name: "to be mirrored", do: func(w *world) {
				w.patch("Endpoints", "web", `{metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: null}}}`)
			}},
			{name: "the Service gets a selector", do: func(w *world) {
				onePod(w)
				w.patch("Service", "web", `{spec: {selector: {app: web}}}`)
			}},
			{name: "and loses it", do: func(w *world) { w.patch("Service", "web", `{spec: {selector: null}}`) }},
			{name: "the Endpoints are deleted", do: func(w *world) { w.delete("Endpoints", "web") }},
		}},
		{"Endpoints first", []step{
			{name: "without a Service", do: func(w *world) { w.create(endpoints("", one)) }},
			{name: "the Service comes", do: func(w *world) { w.create(bareService) }},
			{name: "a slice by hand beside it", do: func(w *world) {
				w.create(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: hand-made, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{addresses: [10.1.0.8]}], ports: [{port: 80}]}`)
			}},
			{name: "the Service goes", do: func(w *world) { w.delete("Service", "web") }},
		}},
		{"leader election", []step{
			{name: "Endpoints that hold a lock", do: func(w *world) {
				w.create(endpoints(`, annotations: {control-plane.alpha.kubernetes.io/leader: '{}'}`, one), bareService)
			}},
		}},
		{"too many addresses", []step{
			{name: "of one subset", do: func(w *world) {
				var addresses []string
				for i := range 1100 {
					addresses = append(addresses, fmt.Sprintf("{ip: 10.3.%d.%d}", i/250, i%250+1))
				}
				w.create(bareService, endpoints("", `[{addresses: [`+strings.Join(addresses, ", ")+`], ports: [{port: 80}]}]`))
			}},
		}},
	})
}
