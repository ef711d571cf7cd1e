// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

const poll = 10 * time.Millisecond

// endpoints are the pods that a Service leads to, with their addresses, sorted.
type endpoints []string

func (e endpoints) String() string {
	if len(e) == 0 {
		return "none"
	}
	return strings.Join(e, ", ")
}

func allEqual(want, got map[string]endpoints) bool {
	return maps.EqualFunc(want, got, func(a, b endpoints) bool { return slices.Equal(a, b) })
}

// view is what one node sees.
type view struct {
	node   string
	client kubernetes.Interface
	before endpoints // what the watch began with
}

// change is an event of a watch.
type change struct {
	node  string
	kind  watch.EventType
	at    time.Time
	after endpoints
}

func newView(ctx context.Context, server *testserver.Server, node string) (*view, error) {
	config, err := server.StartView(ctx, node)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	return &view{node: node, client: client}, err
}

func ofService() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}
}

// endpoints reads the slices of the Service, and the revision that they are of.
func (v *view) endpoints(ctx context.Context) (endpoints, string, error) {
	slices, err := v.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, ofService())
	if err != nil {
		return nil, "", fmt.Errorf("the view of %s: %w", v.node, err)
	}
	return endpointsOf(slices.Items...), slices.ResourceVersion, nil
}

func endpointsOf(all ...discoveryv1.EndpointSlice) endpoints {
	var found endpoints
	for _, slice := range all {
		for _, endpoint := range slice.Endpoints {
			name := "?"
			if endpoint.TargetRef != nil {
				name = endpoint.TargetRef.Name
			}
			found = append(found, fmt.Sprintf("%s (%s)", name, endpoint.Addresses[0]))
		}
	}
	slices.Sort(found)
	return found
}

func (v *view) waitFor(ctx context.Context, want endpoints) error {
	var got endpoints
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (_ bool, err error) {
		got, _, err = v.endpoints(ctx)
		return err == nil && slices.Equal(want, got), err
	})
	if err != nil {
		return fmt.Errorf("node %s sees %v, it should see %v: %w", v.node, got, want, err)
	}
	return nil
}

// watch sends what happens to the slices of the Service from now on, until ctx ends.
func (v *view) watch(ctx context.Context, news chan<- change) error {
	before, revision, err := v.endpoints(ctx)
	if err != nil {
		return err
	}
	v.before = before
	options := ofService()
	options.ResourceVersion = revision
	events, err := v.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching the view of %s: %w", v.node, err)
	}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}
			select {
			// The Service of the demo has one slice.
			case news <- change{node: v.node, kind: event.Type, at: time.Now(), after: endpointsOf(*slice)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// expected works out what each node is to see, from the nodes and the pods alone.
func expected(ctx context.Context, client kubernetes.Interface) (map[string]endpoints, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	unitOf := map[string]string{}
	for _, node := range nodes.Items {
		unitOf[node.Name] = node.Labels[unitKey]
	}
	want := map[string]endpoints{}
	for node, unit := range unitOf {
		for _, pod := range pods.Items {
			if unitOf[pod.Spec.NodeName] == unit {
				want[node] = append(want[node], fmt.Sprintf("%s (%s)", pod.Name, pod.Status.PodIP))
			}
		}
		slices.Sort(want[node])
	}
	return want, nil
}
