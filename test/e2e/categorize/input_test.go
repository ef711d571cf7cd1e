// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package categorize

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// input is a golden input of pkg/topology: a cluster, one Service in it, and what upstream has. It is also the
// Locality of its node.
type input struct {
	Node           string                       `json:"node"`
	Nodes          map[string]map[string]string `json:"nodes"`
	Service        corev1.Service               `json:"service"`
	EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointSlices"`
}

var _ topology.Locality = (*input)(nil)

func readInput(t *testing.T, name string) *input {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "pkg", "topology", "testdata", name+".in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := &input{}
	if err := yaml.Unmarshal(data, in); err != nil {
		t.Fatal(err)
	}
	// kube-proxy ignores slices without a namespace; pkg/topology does not look at it.
	in.Service.Namespace = metav1.NamespaceDefault
	for _, slice := range in.EndpointSlices {
		slice.Namespace = metav1.NamespaceDefault
		if name, ok := topology.ServiceName(slice); !ok || name != in.Service.Name {
			t.Fatalf("slice %s is not one of the Service %s", slice.Name, in.Service.Name)
		}
	}
	return in
}

// Label implements topology.Locality.
func (in *input) Label(key string) (string, bool) {
	value, ok := in.Nodes[in.Node][key]
	return value, ok
}

// Member implements topology.Locality.
func (in *input) Member(key, nodeName string) bool {
	own, ok := in.Label(key)
	value, has := in.Nodes[nodeName][key]
	return ok && has && own == value
}

// filtered returns the slices as the node sees them.
func (in *input) filtered(t *testing.T) []*discoveryv1.EndpointSlice {
	t.Helper()
	policy, err := topology.ParsePolicy(in.Service.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	selection := topology.Select(policy, in, in.EndpointSlices)
	var view []*discoveryv1.EndpointSlice
	for _, slice := range in.EndpointSlices {
		view = append(view, selection.Slice(in, slice))
	}
	return view
}

// served returns the Service with what the golden inputs leave open: it is a load balancer with these policies.
func (in *input) served(internal corev1.ServiceInternalTrafficPolicy, external corev1.ServiceExternalTrafficPolicy) *corev1.Service {
	service := in.Service.DeepCopy()
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "10.96.0.10", []string{"10.96.0.10"}
	service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}
	service.Spec.InternalTrafficPolicy, service.Spec.ExternalTrafficPolicy = &internal, external
	if external == corev1.ServiceExternalTrafficPolicyLocal {
		service.Spec.HealthCheckNodePort = 30081
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	return service
}
