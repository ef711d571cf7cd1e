// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	nodeCount     = 100
	unitCount     = 10
	serviceCount  = 1_000
	endpointCount = 10
	// closedCount is the number of Services that are closed over their unit: four of five.
	closedCount = serviceCount / 5 * 4
	// loaders is how many requests load the cluster at a time.
	loaders = 16

	slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"
	// plainObject is an object that grid-apiserver does not serve itself.
	plainObject = "/api/v1/namespaces/default/configmaps/bench"
)

// nodeName returns the name of node i; the first ones are the nodes of the lab.
func nodeName(i int) string { return fmt.Sprintf("node%d", i) }

func unitName(i int) string { return fmt.Sprintf("unit-%d", i%unitCount) }

func serviceName(i int) string { return fmt.Sprintf("service-%04d", i) }

func closed(service int) bool { return service%5 != 4 }

// load creates the cluster.
func (b *bench) load(ctx context.Context) error {
	if err := b.lab.SetUnits(ctx, unitName(0), unitName(1), unitName(2)); err != nil {
		return err
	}
	client := b.lab.Cloud.Kubernetes
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Data: map[string]string{"text": fmt.Sprintf("%01000d", 0)}}
	if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, data, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := inParallel(ctx, nodeCount-lab.NodeCount, func(i int) error {
		i += lab.NodeCount
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			corev1.LabelHostname: nodeName(i), lab.ZoneLabel: unitName(i),
		}}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	return inParallel(ctx, serviceCount, func(i int) error {
		annotations := map[string]string{}
		if closed(i) {
			annotations[lab.TopologyKeys] = lab.TopologyValue
		}
		if _, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, lab.Service(serviceName(i), annotations), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, newSlice(i), metav1.CreateOptions{})
		return err
	})
}

// newSlice returns the slice of Service i. Its endpoints are on the nodes i, i+1 and so on, so one of them is in
// each unit.
func newSlice(i int) *discoveryv1.EndpointSlice {
	var endpoints []lab.Endpoint
	for k := range endpointCount {
		endpoints = append(endpoints, lab.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", 128+k, i/250, i%250+1), Node: nodeName((i + k) % nodeCount)})
	}
	slice := lab.Slice(serviceName(i), endpoints...)
	for k := range slice.Endpoints {
		serving, terminating := true, false
		slice.Endpoints[k].Conditions.Serving, slice.Endpoints[k].Conditions.Terminating = &serving, &terminating
		slice.Endpoints[k].TargetRef = &corev1.ObjectReference{
			Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-6d4cf56db6-%05d", serviceName(i), k),
			UID: types.UID(fmt.Sprintf("7f0fe7a2-5b4e-4d4b-9d8c-%06d%06d", i, k)),
		}
	}
	return slice
}

// checkView reports whether slices are the view of a node in a unit.
func checkView(slices []discoveryv1.EndpointSlice, unit int) error {
	seen := 0
	for i := range slices {
		owner := slices[i].Labels[discoveryv1.LabelServiceName]
		var service int
		if _, err := fmt.Sscanf(owner, "service-%d", &service); err != nil {
			continue // of default/kubernetes
		}
		seen++
		want := endpointCount
		if closed(service) {
			want = 1
		}
		if got := len(slices[i].Endpoints); got != want {
			return fmt.Errorf("the slice of %s has %d endpoints, want %d", owner, got, want)
		}
		var node int
		if _, err := fmt.Sscanf(*slices[i].Endpoints[0].NodeName, "node%d", &node); err != nil {
			return err
		}
		if closed(service) && node%unitCount != unit%unitCount {
			return fmt.Errorf("the slice of %s has an endpoint on %s, want one in %s", owner, nodeName(node), unitName(unit))
		}
	}
	if seen != serviceCount {
		return fmt.Errorf("there are %d slices, want %d", seen, serviceCount)
	}
	return nil
}

// moveToNextUnit relabels the node.
func (b *bench) moveToNextUnit(ctx context.Context) error {
	b.unit++
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, lab.ZoneLabel, unitName(b.unit))
	_, err := b.lab.Cloud.Kubernetes.CoreV1().Nodes().Patch(ctx, b.node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// inParallel calls fn for 0 to n-1, some at a time, and returns the first error.
func inParallel(ctx context.Context, n int, fn func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, loaders, n, func(i int) {
		if err := fn(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}
