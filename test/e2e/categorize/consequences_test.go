// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package categorize

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	clusterInternal = corev1.ServiceInternalTrafficPolicyCluster
	localInternal   = corev1.ServiceInternalTrafficPolicyLocal
	clusterExternal = corev1.ServiceExternalTrafficPolicyCluster
	localExternal   = corev1.ServiceExternalTrafficPolicyLocal
)

// TestConsequences compares what the kube-proxy of a node does with the slices that upstream has and with those of
// the view. docs/topology.md tells users of each difference.
func TestConsequences(t *testing.T) {
	type ips = []string
	tests := []struct {
		name     string
		input    string
		internal corev1.ServiceInternalTrafficPolicy
		external corev1.ServiceExternalTrafficPolicy
		upstream rules
		view     rules
	}{
		{
			name: "a unit without endpoints rejects outside traffic too", input: "nothing-left",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.2"}, Any: true},
			view:     rules{},
		},
		{
			// With the slices of upstream there is no local endpoint either, but there are others: kube-proxy drops
			// what comes from outside, and sends what comes from the node or its pods to them.
			name: "a unit without endpoints rejects outside traffic under the policy Local", input: "nothing-left",
			internal: clusterInternal, external: localExternal,
			upstream: rules{Cluster: ips{"10.0.0.2"}, Any: true},
			view:     rules{},
		},
		{
			name: "the key * at the end of an ordered list keeps a unit without endpoints reachable", input: "ordered-any-last",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.3", "10.0.0.4"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.3", "10.0.0.4"}, Any: true},
		},
		{
			name: "a node without the label hides its own pods", input: "own-node-without-label",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, Any: true, Healthy: 1},
			view:     rules{},
		},
		{
			name: "a node without the label fails internalTrafficPolicy Local", input: "own-node-without-label",
			internal: localInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, Local: ips{"10.0.0.4"}, Any: true, Healthy: 1},
			view:     rules{},
		},
		{
			name: "a node without the label fails externalTrafficPolicy Local and its health check", input: "own-node-without-label",
			internal: clusterInternal, external: localExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, Local: ips{"10.0.0.4"}, Any: true, Healthy: 1},
			view:     rules{},
		},
		{
			name: "the key kubernetes.io/hostname shows a node without the label its own pods", input: "own-node-without-one-label",
			internal: localInternal, external: localExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.3", "10.0.0.4"}, Local: ips{"10.0.0.4"}, Any: true, Healthy: 1},
			view:     rules{Cluster: ips{"10.0.0.4"}, Local: ips{"10.0.0.4"}, Any: true, Healthy: 1},
		},
		{
			// n1, in zone z1, and n2 are the unit; the endpoint without a hint is on n3.
			name: "removing an endpoint without a hint switches zone hints on", input: "hints-become-complete",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Any: true, Healthy: 1},
			view:     rules{Cluster: ips{"10.0.0.1"}, Any: true, Healthy: 1},
		},
		{
			name: "removing an endpoint without a hint switches node hints on", input: "node-hints-become-complete",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Any: true, Healthy: 1},
			view:     rules{Cluster: ips{"10.0.0.1"}, Any: true, Healthy: 1},
		},
		{
			name: "removing the endpoint that is hinted for the zone switches hints off", input: "hints-lose-the-zone",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.3"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.12", "10.0.0.2"}, Any: true},
		},
		{
			name: "a unit with terminating endpoints only is served by them", input: "union-terminating-only",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.3"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.2"}, Any: true},
		},
		{
			name: "the first key decides alone", input: "ordered-first-key",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Any: true, Healthy: 1},
			view:     rules{Cluster: ips{"10.0.0.1"}, Any: true, Healthy: 1},
		},
		{
			// The endpoint of the first key is in the view, as it matches the second one too, and gets no traffic.
			name: "a first key without a ready endpoint gets no traffic", input: "ordered-two-slices-first-key-not-ready",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.2", "10.0.0.3"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.2"}, Any: true},
		},
		{
			name: "a ready endpoint of a later key goes before a terminating one", input: "ordered-ready-before-terminating",
			internal: clusterInternal, external: clusterExternal,
			upstream: rules{Cluster: ips{"10.0.0.2", "10.0.0.3"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.2"}, Any: true},
		},
		{
			name: "the terminating endpoint that decides gets the traffic", input: "ordered-terminating",
			internal: clusterInternal, external: localExternal,
			upstream: rules{Cluster: ips{"10.0.0.3"}, Local: ips{"10.0.0.1"}, Any: true},
			view:     rules{Cluster: ips{"10.0.0.1"}, Local: ips{"10.0.0.1"}, Any: true},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			in := readInput(t, tc.input)
			service := in.served(tc.internal, tc.external)
			labels := in.Nodes[in.Node]
			for _, of := range []struct {
				name string
				got  rules
				want rules
			}{
				{"the slices of upstream", kubeProxy(t, in.Node, labels, service, in.EndpointSlices), tc.upstream},
				{"the view", kubeProxy(t, in.Node, labels, service, in.filtered(t)), tc.view},
			} {
				if diff := cmp.Diff(of.want, of.got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", of.name, diff)
				}
			}
		})
	}
}
