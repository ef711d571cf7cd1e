// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// at makes a state of a configmap with its uid as name.
func at(uid types.UID, change func(*node), owners ...metav1.OwnerReference) *node {
	n := &node{
		identity: identity{apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: string(uid), uid: uid},
		resource: configMaps, owners: owners,
	}
	if change != nil {
		change(n)
	}
	return n
}

func to(uid types.UID, blocking bool) metav1.OwnerReference {
	return object{resource: configMaps, namespace: "a", name: string(uid), uid: uid}.ref(blocking)
}

func held(n *node) { n.deleting, n.foreground = true, true }

func TestGraphQueuesWhatChanged(t *testing.T) {
	renamed := to("a", false)
	renamed.Name = "other"
	tests := []struct {
		name    string
		before  []*node
		change  func(*graph) effects
		queue   []types.UID
		absent  []string
		invalid int
	}{
		{"object alone", nil, func(g *graph) effects { return g.observe(at("a", nil)) }, nil, nil, 0},
		{"owner that is there", []*node{at("a", nil)}, func(g *graph) effects { return g.observe(at("b", nil, to("a", true))) }, nil, nil, 0},
		{"owner not seen", nil, func(g *graph) effects { return g.observe(at("b", nil, to("a", true))) }, []types.UID{"b"}, nil, 0},
		{"owner seen later", []*node{at("b", nil, to("a", true))}, func(g *graph) effects { return g.observe(at("a", nil)) }, nil, nil, 0},
		{"reference to another name", []*node{at("a", nil)}, func(g *graph) effects { return g.observe(at("b", nil, renamed)) }, []types.UID{"b"}, nil, 0},
		{"seen later under another name", []*node{at("b", nil, renamed)}, func(g *graph) effects { return g.observe(at("a", nil)) }, []types.UID{"b"}, nil, 0},
		{
			"owner in another namespace", []*node{at("a", func(n *node) { n.namespace = "x" })},
			func(g *graph) effects { return g.observe(at("b", nil, to("a", false))) }, []types.UID{"b"}, nil, 1,
		},
		{
			"seen later in another namespace", []*node{at("b", nil, to("a", false))},
			func(g *graph) effects { return g.observe(at("a", func(n *node) { n.namespace = "x" })) }, []types.UID{"b"}, nil, 1,
		},
		{"same again", []*node{at("b", nil, to("a", true))}, func(g *graph) effects { return g.observe(at("b", nil, to("a", true))) }, nil, nil, 0},
		{
			"reference added", []*node{at("b", nil, to("a", true))},
			func(g *graph) effects { return g.observe(at("b", nil, to("a", true), to("c", true))) }, []types.UID{"b"}, nil, 0,
		},
		{"owner gone", []*node{at("a", nil), at("b", nil, to("a", true))}, func(g *graph) effects { return g.remove("a") }, []types.UID{"b"}, []string{"a"}, 0},
		{"gone without dependents", []*node{at("a", nil)}, func(g *graph) effects { return g.remove("a") }, nil, nil, 0},
		{
			"dependents no more", []*node{at("a", nil), at("b", nil, to("a", true)), at("b", nil)},
			func(g *graph) effects { return g.remove("a") }, nil, nil, 0,
		},
		{
			"owner waits", []*node{at("a", nil), at("b", nil, to("a", true)), at("c", nil, to("a", false))},
			func(g *graph) effects { return g.observe(at("a", held)) }, []types.UID{"a", "b", "c"}, nil, 0,
		},
		{"waiting owner again", []*node{at("a", held), at("b", nil, to("a", true))}, func(g *graph) effects { return g.observe(at("a", held)) }, nil, nil, 0},
		{
			"dependent of a waiting owner goes", []*node{at("a", held), at("b", nil, to("a", true))},
			func(g *graph) effects { return g.remove("b") }, []types.UID{"a"}, nil, 0,
		},
		{
			"dependent blocks no more", []*node{at("a", held), at("b", nil, to("a", true))},
			func(g *graph) effects { return g.observe(at("b", nil, to("a", false))) }, []types.UID{"a", "b"}, nil, 0,
		},
		{
			"dependent lets go", []*node{at("a", held), at("b", nil, to("a", true))},
			func(g *graph) effects { return g.observe(at("b", nil)) }, []types.UID{"a"}, nil, 0,
		},
		{
			"new dependent of a waiting owner", []*node{at("a", held)},
			func(g *graph) effects { return g.observe(at("b", nil, to("a", true))) }, []types.UID{"a", "b"}, nil, 0,
		},
		{"orphans", []*node{at("a", nil)}, func(g *graph) effects {
			return g.observe(at("a", func(n *node) { n.deleting, n.orphaning = true, true }))
		}, []types.UID{"a"}, nil, 0},
		{
			"waits once the orphans are free", []*node{at("a", func(n *node) { held(n); n.orphaning = true })},
			func(g *graph) effects { return g.observe(at("a", held)) }, []types.UID{"a"}, nil, 0,
		},
		{
			"relist", []*node{at("a", nil), at("b", nil, to("a", true)), at("c", nil)},
			func(g *graph) effects {
				return g.replace(configMaps, []*node{at("b", nil, to("a", true)), at("d", nil)})
			},
			[]types.UID{"b"}, []string{"a"}, 0,
		},
		{"relist of another kind", []*node{at("a", nil), at("b", nil, to("a", true))}, func(g *graph) effects { return g.replace(pods, nil) }, nil, nil, 0},
		{"kind gone", []*node{at("a", nil), at("b", func(n *node) { n.resource = pods }, to("a", true))}, func(g *graph) effects { return g.forget(configMaps) }, []types.UID{"b"}, nil, 0},
		{
			"kind followed in another version", []*node{at("a", nil), at("a", func(n *node) { n.resource = pods })},
			func(g *graph) effects { e := g.forget(configMaps); return mustHave(g, "a", e) }, nil, nil, 0,
		},
		{"refers to itself", nil, func(g *graph) effects { return g.observe(at("a", nil, to("a", true))) }, nil, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newGraph()
			for _, n := range test.before {
				g.observe(n)
			}
			e := test.change(g)
			slices.Sort(e.queue)
			if diff := cmp.Diff(test.queue, slices.Compact(e.queue), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("queue (-want +got):\n%s", diff)
			}
			var absent []string
			for _, id := range e.absent {
				absent = append(absent, id.name)
			}
			if diff := cmp.Diff(test.absent, absent); diff != "" {
				t.Errorf("absent (-want +got):\n%s", diff)
			}
			if len(e.invalid) != test.invalid {
				t.Errorf("invalid: %v", e.invalid)
			}
			for uid := range g.nodes {
				g.remove(uid)
			}
			if len(g.nodes)+len(g.dependents)+len(g.followed) != 0 {
				t.Errorf("left in an empty graph: %v", g)
			}
		})
	}
}

// mustHave queues an impossible object if the graph has lost the uid.
func mustHave(g *graph, uid types.UID, e effects) effects {
	if !g.has(uid) {
		e.queue = append(e.queue, "lost")
	}
	return e
}
