// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	// propagation is how long a change upstream may take until the ClusterIPs follow it on every node.
	propagation = 2 * time.Second
	// requests is how many requests decide what a ClusterIP reaches: an endpoint out of three is missed by chance
	// once in 190,000 times.
	requests = 30
)

// setUp gives the nodes their units and makes sure that kube-proxies run as wanted.
func setUp(t *testing.T, via lab.Via, mode lab.ProxyMode, units ...string) {
	t.Helper()
	must(t, cluster.SetUnits(t.Context(), units...))
	must(t, cluster.StartNodes(t.Context(), via, mode))
}

// closed are the annotations of a Service that is closed over its unit.
func closed() map[string]string { return map[string]string{lab.TopologyKeys: lab.TopologyValue} }

// createService creates a Service with an echo endpoint on every node and deletes it at the end of the test.
func createService(t *testing.T, service *corev1.Service) *corev1.Service {
	t.Helper()
	t.Cleanup(func() {
		if err := cluster.DeleteService(context.Background(), service.Name); err != nil {
			t.Error(err)
		}
	})
	created, err := cluster.CreateService(t.Context(), service, cluster.EchoEndpoints()...)
	must(t, err)
	return created
}

// setEndpoints replaces the endpoints of a Service.
func setEndpoints(t *testing.T, service string, endpoints ...lab.Endpoint) {
	t.Helper()
	client := cluster.Cloud.Kubernetes
	_, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(t.Context(), lab.Slice(service, endpoints...), metav1.UpdateOptions{})
	must(t, err)
	_, err = client.CoreV1().Endpoints(metav1.NamespaceDefault).Update(t.Context(), lab.Endpoints(service, endpoints...), metav1.UpdateOptions{})
	must(t, err)
}

// annotate sets the topologyKeys annotation of a Service; "null" removes it.
func annotate(t *testing.T, service, jsonValue string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, lab.TopologyKeys, jsonValue)
	_, err := cluster.Cloud.Kubernetes.CoreV1().Services(metav1.NamespaceDefault).Patch(t.Context(), service, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// moveToUnit relabels a node upstream.
func moveToUnit(t *testing.T, node, unit string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, lab.ZoneLabel, unit)
	_, err := cluster.Cloud.Kubernetes.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func deleteNode(t *testing.T, node string) {
	t.Helper()
	must(t, cluster.Cloud.Kubernetes.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
}

// view is a client of a node's grid-apiserver with the local identity.
func view(t *testing.T, n *lab.Node) kubernetes.Interface {
	t.Helper()
	client, err := n.View()
	must(t, err)
	return client
}

// reached tells what a number of requests to a ClusterIP reach from a node, for example "node1 node2". The spare
// address of node1 is "node1+".
func reached(ctx context.Context, n *lab.Node, service *corev1.Service) (string, error) {
	var names []string
	for range requests {
		answer, err := n.Get(ctx, "http://"+service.Spec.ClusterIP+"/")
		if err != nil {
			return "", err
		}
		name, address, _ := strings.Cut(answer, " ")
		for _, other := range cluster.Nodes {
			if address == other.Spare {
				name += "+"
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " "), nil
}

// expectReached waits until each node, in order, reaches exactly what want says; "" for a node: not checked.
func expectReached(t *testing.T, timeout time.Duration, service *corev1.Service, want ...string) {
	t.Helper()
	errs := make([]error, len(want))
	var wg sync.WaitGroup
	for i, expected := range want {
		if expected == "" {
			continue
		}
		n := cluster.Nodes[i]
		wg.Go(func() {
			errs[i] = lab.WaitFor(t.Context(), timeout, n.Name+" reaches exactly: "+expected, func(ctx context.Context) error {
				got, err := reached(ctx, n, service)
				if err == nil && got != expected {
					err = fmt.Errorf("it reaches: %s", got)
				}
				return err
			})
		})
	}
	wg.Wait()
	must(t, errors.Join(errs...))
}

// eventually waits until check returns nil.
func eventually(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	must(t, lab.WaitFor(t.Context(), timeout, what, check))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
