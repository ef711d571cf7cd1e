// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package categorize

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy"
)

// rules are what kube-proxy bases its rules for one Service port on.
type rules struct {
	// Cluster and Local are the endpoints for traffic under either policy, empty if no traffic of the Service is under
	// it. They are sorted as strings.
	Cluster, Local []string
	// Any is false if kube-proxy knows of no endpoint to send traffic to, on whatever node: it then rejects all traffic
	// of the port, also that to NodePorts and load balancer addresses.
	Any bool
	// Healthy is how many local endpoints the health check of healthCheckNodePort counts. It fails without any.
	Healthy int
}

// kubeProxy feeds a Service and its slices to the state of a kube-proxy on a node, and returns what becomes of the
// port of the Service.
func kubeProxy(t *testing.T, nodeName string, nodeLabels map[string]string, service *corev1.Service, slices []*discoveryv1.EndpointSlice) rules {
	t.Helper()
	services := proxy.NewServiceChangeTracker(corev1.IPv4Protocol, nil, nil)
	services.Update(nil, service)
	ports := proxy.ServicePortMap{}
	ports.Update(services)

	tracker := proxy.NewEndpointsChangeTracker(corev1.IPv4Protocol, nodeName, nil, nil)
	for _, slice := range slices {
		tracker.EndpointSliceUpdate(slice, false)
	}
	endpoints := proxy.EndpointsMap{}
	endpoints.Update(tracker)

	name := proxy.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: service.Namespace, Name: service.Name},
		Port:           service.Spec.Ports[0].Name, Protocol: service.Spec.Ports[0].Protocol,
	}
	port, ok := ports[name]
	if !ok {
		t.Fatalf("kube-proxy does not have the port %s", name)
	}
	cluster, local, _, anywhere := proxy.CategorizeEndpoints(endpoints[name], port, nodeName, nodeLabels)
	return rules{
		Cluster: addresses(cluster), Local: addresses(local), Any: anywhere,
		Healthy: endpoints.LocalReadyEndpoints()[name.NamespacedName],
	}
}

func addresses(endpoints []proxy.Endpoint) []string {
	var all []string
	for _, endpoint := range endpoints {
		all = append(all, endpoint.IP())
	}
	return all
}
