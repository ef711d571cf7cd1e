// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// pods are those of a Service, by the names of their nodes.
type pods struct{ Ready, NotReady []string }

// objects are what upstream makes of pods: Endpoints, and slices that each have the pods of every n-th node.
func (p pods) objects(service string, n int) []object {
	var all []object
	for i := range n {
		s := slice(fmt.Sprintf("%s-%d", service, i), service)
		for _, name := range slices.Sorted(slices.Values(slices.Concat(p.Ready, p.NotReady))) {
			if int(name[1]-'0')%n == i {
				ready := slices.Contains(p.Ready, name)
				s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{address(name)}, NodeName: &name, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				})
			}
		}
		all = append(all, s)
	}
	e := endpoints(service, slices.Concat(p.Ready, p.NotReady)...)
	subset := &e.Subsets[0]
	subset.Addresses, subset.NotReadyAddresses = subset.Addresses[:len(p.Ready)], subset.Addresses[len(p.Ready):]
	return append(all, e)
}

// podsInSlices and podsInEndpoints are the pods of a Service that a client sees.
func podsInSlices(t testing.TB, client kubernetes.Interface, service string) pods {
	t.Helper()
	list, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		t.Fatal(err)
	}
	var p pods
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if *e.Conditions.Ready {
				p.Ready = append(p.Ready, *e.NodeName)
			} else {
				p.NotReady = append(p.NotReady, *e.NodeName)
			}
		}
	}
	slices.Sort(p.Ready)
	slices.Sort(p.NotReady)
	return p
}

func podsInEndpoints(t testing.TB, client kubernetes.Interface, service string) pods {
	t.Helper()
	e, err := client.CoreV1().Endpoints("default").Get(t.Context(), service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var p pods
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			p.Ready = append(p.Ready, *a.NodeName)
		}
		for _, a := range s.NotReadyAddresses {
			p.NotReady = append(p.NotReady, *a.NodeName)
		}
	}
	return p
}

// wantPods waits until slices and Endpoints agree on the pods of a Service.
func wantPods(t testing.TB, client kubernetes.Interface, step, service string, want pods) {
	t.Helper()
	var diff string
	eventually(t, patience, func() bool {
		diff = "slices: " + cmp.Diff(want, podsInSlices(t, client, service)) + "Endpoints: " + cmp.Diff(want, podsInEndpoints(t, client, service))
		return diff == "slices: Endpoints: "
	}, func() any { return step + ", " + service + " (-want +got): " + diff })
}

func TestPoliciesFollowReadiness(t *testing.T) {
	var (
		n1, n2   = []string{"n1"}, []string{"n2"}
		both     = []string{"n1", "n2"}
		outside  = []string{"n3", "n4"}
		hostname = `["kubernetes.io/hostname","zone1"]`
		anywhere = `["zone1","*"]`
	)
	type step struct {
		name     string
		upstream pods
		view     pods
		// one and two are the events of the slices where there is one or are two; endpoints is the last one of the Endpoints.
		one, two  []string
		endpoints string
	}
	tests := []struct {
		name   string
		keys   string
		policy topology.Mode
		steps  []step // the first one is there from the start
	}{
		{"union", hostname, topology.Union, []step{
			{name: "all ready", upstream: pods{Ready: both}, view: pods{Ready: both}},
			{
				name: "own not ready", upstream: pods{Ready: n2, NotReady: n1}, view: pods{Ready: n2, NotReady: n1},
				one: []string{"0[n1 n2]"}, two: []string{"1[n1]"}, endpoints: "[n2]",
			},
			{
				name: "own ready again", upstream: pods{Ready: both}, view: pods{Ready: both},
				one: []string{"0[n1 n2]"}, two: []string{"1[n1]"}, endpoints: "[n1 n2]",
			},
		}},
		{"ordered", hostname, topology.Ordered, []step{
			{name: "all ready", upstream: pods{Ready: both}, view: pods{Ready: n1}},
			{
				// The pod on n1 matches zone1, too, by which all are now filtered.
				name: "own not ready", upstream: pods{Ready: n2, NotReady: n1}, view: pods{Ready: n2, NotReady: n1},
				one: []string{"0[n1 n2]"}, two: []string{"1[n1]", "0[n2]"}, endpoints: "[n2]",
			},
			{
				name: "own ready again", upstream: pods{Ready: both}, view: pods{Ready: n1},
				one: []string{"0[n1]"}, two: []string{"1[n1]", "0[]"}, endpoints: "[n1]",
			},
		}},
		{"ordered-any", anywhere, topology.Ordered, []step{
			{name: "outside of the unit only", upstream: pods{Ready: outside}, view: pods{Ready: outside}},
			{
				name: "not ready in the unit", upstream: pods{Ready: outside, NotReady: n2}, view: pods{Ready: outside, NotReady: n2},
				one: []string{"0[n2 n3 n4]"}, two: []string{"0[n2 n4]"}, endpoints: "[n3 n4]",
			},
			{
				name: "ready in the unit", upstream: pods{Ready: slices.Concat(n2, outside)}, view: pods{Ready: n2},
				one: []string{"0[n2]"}, two: []string{"0[n2]", "1[]"}, endpoints: "[n2]",
			},
			{
				name: "gone from the unit", upstream: pods{Ready: outside}, view: pods{Ready: outside},
				one: []string{"0[n3 n4]"}, two: []string{"0[n4]", "1[n3]"}, endpoints: "[n3 n4]",
			},
		}},
	}
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d slices", n), func(t *testing.T) {
			objects := fourNodes()
			for _, o := range objects {
				o.GetLabels()[corev1.LabelHostname] = o.GetName()
			}
			for _, tc := range tests {
				s := service(tc.name, tc.keys)
				s.Annotations[topology.TopologyPolicyAnnotation] = string(tc.policy)
				objects = append(append(objects, s), tc.steps[0].upstream.objects(tc.name, n)...)
			}
			u := startUpstream(t, objects...)
			client := readyGrid(t, u).client(t)
			w := watched{endpoints: followEndpoints(t, client)}
			w.services, w.slices = followServices(t, client), followSlices(t, client)
			for _, tc := range tests {
				wantPods(t, client, tc.steps[0].name, tc.name, tc.steps[0].view)
				before := tc.steps[0].upstream.objects(tc.name, n)
				for _, step := range tc.steps[1:] {
					now := step.upstream.objects(tc.name, n)
					for i := range now {
						// A controller writes what differs.
						if !cmp.Equal(before[i], now[i]) {
							u.put(t, now[i])
						}
					}
					before = now
					var events []string
					for _, of := range map[int][]string{1: step.one, 2: step.two}[n] {
						events = append(events, "MODIFIED "+tc.name+"-"+of)
					}
					w.slices.want(patience, events...)
					// Slices and Endpoints come from two watches of upstream: there may be a state between.
					untilEvents(t, w.endpoints, "MODIFIED "+tc.name+step.endpoints)
					wantPods(t, client, step.name, tc.name, step.view)
					w.nothingElse(t, u, strings.ReplaceAll(tc.name+" "+step.name, " ", "-"))
				}
			}
		})
	}
}
