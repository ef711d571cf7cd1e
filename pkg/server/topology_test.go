// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestEndpointWithoutNodeNameIsHiddenWhileTheServiceIsFiltered(t *testing.T) {
	all := []string{"-", "n2", "n3", "n4"}
	u := startUpstream(t, fixture(slice("s-1", "s", all...), endpoints("s", all...))...)
	client := readyGrid(t, u).client(t)
	if diff := cmp.Diff([]string{"s-1[n2]"}, slicesOf(t, client)); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s[n2]"}, endpointsOf(t, client)); diff != "" {
		t.Errorf("Endpoints (-want +got):\n%s", diff)
	}
	u.put(t, service("s", noPolicy))
	becomes(t, soon, slicesOf, client, "s-1[- n2 n3 n4]")
	becomes(t, soon, endpointsOf, client, "s[- n2 n3 n4]")
}

func TestSlicesBelongToTheServiceInTheirLabel(t *testing.T) {
	u := startUpstream(t, fixture(service("s-foo", noPolicy),
		slice("s-abcde", "", "n2", "n3"), slice("s-foo-bar", "s", "n2", "n3"), slice("s-foo-baz", "s-foo", "n2", "n3"), slice("zzz", "s", "n2", "n3"))...)
	client := readyGrid(t, u).client(t)
	want := []string{"s-abcde[n2 n3]", "s-foo-bar[n2]", "s-foo-baz[n2 n3]", "zzz[n2]"}
	if diff := cmp.Diff(want, slicesOf(t, client)); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
}

func TestEveryOrderOfArrivalConverges(t *testing.T) {
	u := startUpstream(t, fourNodes()...)
	client := readyGrid(t, u).client(t)
	open := followSlices(t, client)
	var want []string
	for i, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		// Each order has a Node, a Service and a slice of its own.
		member := fmt.Sprintf("n%d", 10+i)
		name := fmt.Sprintf("s%d", i)
		parts := []object{node(member, "a"), service(name, zoneKeys), slice(name, name, member, "n3")}
		for _, p := range order {
			u.put(t, parts[p])
		}
		final := name + "[" + member + "]"
		want = append(want, final)
		becomes(t, soon, slicesOf, client, want...)
		for last := ""; last != "ADDED "+final && last != "MODIFIED "+final; {
			if last = open.next(soon); last == "nothing" || last == "the watch has ended" {
				t.Fatalf("order %v: %s on the open watch before %s", order, last, final)
			}
		}
	}
	// Nothing more has come since.
	u.put(t, slice("marker", ""))
	open.want(soon, "ADDED marker[]")
}

func TestNothingLeftIsAnEmptyListNotNull(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n2", "n3"), endpoints("s", "n2", "n3"))...)
	g := readyGrid(t, u)
	client := g.client(t)
	slices, eps := followSlices(t, client), followEndpoints(t, client)

	// The last match leaves.
	u.put(t, slice("s-1", "s", "n3"), endpoints("s", "n3"))
	slices.want(soon, "MODIFIED s-1[]")
	eps.want(soon, "MODIFIED s[]")
	checkEmpty(t, g)

	// What happens in the other unit only is no event.
	for _, nodes := range [][]string{{"n3", "n4"}, {"n4"}, {}, {"n3"}} {
		u.put(t, slice("s-1", "s", nodes...), endpoints("s", nodes...))
	}
	u.put(t, slice("marker", ""), endpoints("marker"))
	slices.want(soon, "ADDED marker[]")
	eps.want(soon, "ADDED marker[]")

	g = g.restart(t, u)
	g.waitReady(t)
	checkEmpty(t, g)
}

func checkEmpty(t *testing.T, g *grid) {
	t.Helper()
	a := g.get(t, g.local, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/s-1", asJSON)
	if got, ok := decode[map[string]any](t, a)["endpoints"].([]any); !ok || len(got) != 0 {
		t.Errorf("the slice without endpoints is %s, want endpoints: []", a.body)
	}
	a = g.get(t, g.local, "/api/v1/namespaces/default/endpoints/s", asJSON)
	if got := decode[corev1.Endpoints](t, a); a.code != 200 || got.Subsets != nil {
		t.Errorf("the Endpoints are %s, want none with subsets", a.body)
	}
}
