// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// graph holds the objects that have been observed and who refers to whom. It
// decides what has to be looked at after a change, and does nothing itself.
type graph struct {
	mu    sync.Mutex
	nodes map[types.UID]*node
	// dependents has, for each uid that is referred to, the nodes that do. The
	// owner need not be among the nodes.
	dependents map[types.UID]map[types.UID]struct{}
	// followed are the nodes of each resource.
	followed map[schema.GroupVersionResource]map[types.UID]struct{}
}

func newGraph() *graph {
	return &graph{
		nodes:      map[types.UID]*node{},
		dependents: map[types.UID]map[types.UID]struct{}{},
		followed:   map[schema.GroupVersionResource]map[types.UID]struct{}{},
	}
}

// effects are what a change asks for.
type effects struct {
	queue   []types.UID // to be processed
	absent  []identity  // owners that are gone
	invalid []invalid   // references that cannot be
}

type invalid struct {
	dependent identity
	owner     identity // as the dependent refers to it
}

// observe takes a new state of an object.
func (g *graph) observe(n *node) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.observeLocked(n)
}

func (g *graph) observeLocked(n *node) effects {
	e := effects{}
	old := g.nodes[n.uid]
	var before []metav1.OwnerReference
	if old != nil {
		before = old.owners
	}
	changed := !equality.Semantic.DeepEqual(before, n.owners)
	if changed && old != nil {
		g.unlinkLocked(old)
	}
	g.nodes[n.uid] = n
	if old != nil && old.resource != n.resource {
		// The same object in another version, which is followed from now on.
		g.unfollowLocked(old)
	}
	if g.followed[n.resource] == nil {
		g.followed[n.resource] = map[types.UID]struct{}{}
	}
	g.followed[n.resource][n.uid] = struct{}{}
	if changed {
		for _, reference := range n.owners {
			if g.dependents[reference.UID] == nil {
				g.dependents[reference.UID] = map[types.UID]struct{}{}
			}
			g.dependents[reference.UID][n.uid] = struct{}{}
			if !slices.ContainsFunc(before, func(r metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(r, reference) }) {
				g.judgeLocked(n, reference, &e)
			}
		}
		// A reference that has gone or blocks no more may set an owner free.
		g.queueHeldLocked(before, &e)
		g.queueHeldLocked(n.owners, &e)
	}
	if old == nil {
		// Those who have referred to it before it was observed.
		for uid := range g.dependents[n.uid] {
			dependent := g.nodes[uid]
			for _, reference := range dependent.owners {
				if reference.UID == n.uid && dependent != n {
					g.judgeLocked(dependent, reference, &e)
				}
			}
		}
	}
	if n.orphaning && (old == nil || !old.orphaning) {
		e.queue = append(e.queue, n.uid)
	}
	if n.foreground && !n.orphaning && (old == nil || !old.foreground || old.orphaning) {
		e.queue = append(e.queue, n.uid)
		e.queue = slices.AppendSeq(e.queue, maps.Keys(g.dependents[n.uid]))
	}
	return e
}

// judgeLocked finds out whether a reference has to be verified.
func (g *graph) judgeLocked(n *node, reference metav1.OwnerReference, e *effects) {
	o := g.nodes[reference.UID]
	verify := o == nil || o.foreground
	if o != nil {
		switch n.fit(reference, o) {
		case fits:
		case otherNamespace:
			e.invalid = append(e.invalid, invalid{dependent: n.identity, owner: owner(reference, n.namespace)})
			verify = true
		case otherName:
			verify = true
		}
	}
	if verify {
		e.queue = append(e.queue, n.uid)
	}
}

// queueHeldLocked queues the owners that wait for their dependents.
func (g *graph) queueHeldLocked(references []metav1.OwnerReference, e *effects) {
	for _, reference := range references {
		if o := g.nodes[reference.UID]; o != nil && o.foreground {
			e.queue = append(e.queue, o.uid)
		}
	}
}

func (g *graph) unlinkLocked(n *node) {
	for _, reference := range n.owners {
		delete(g.dependents[reference.UID], n.uid)
		if len(g.dependents[reference.UID]) == 0 {
			delete(g.dependents, reference.UID)
		}
	}
}

func (g *graph) unfollowLocked(n *node) {
	delete(g.followed[n.resource], n.uid)
	if len(g.followed[n.resource]) == 0 {
		delete(g.followed, n.resource)
	}
}

// remove takes the news that an object is gone.
func (g *graph) remove(uid types.UID) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := effects{}
	g.removeLocked(uid, &e)
	return e
}

func (g *graph) removeLocked(uid types.UID, e *effects) {
	n := g.nodes[uid]
	if n == nil {
		return
	}
	delete(g.nodes, uid)
	g.unfollowLocked(n)
	g.unlinkLocked(n)
	if len(g.dependents[uid]) > 0 {
		e.absent = append(e.absent, n.identity)
		e.queue = slices.AppendSeq(e.queue, maps.Keys(g.dependents[uid]))
	}
	g.queueHeldLocked(n.owners, e)
}

// replace takes all objects of a resource; others of it are gone.
func (g *graph) replace(resource schema.GroupVersionResource, nodes []*node) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	present := make(map[types.UID]struct{}, len(nodes))
	for _, n := range nodes {
		present[n.uid] = struct{}{}
	}
	e := effects{}
	for _, uid := range slices.Collect(maps.Keys(g.followed[resource])) {
		if _, ok := present[uid]; !ok {
			g.removeLocked(uid, &e)
		}
	}
	for _, n := range nodes {
		e.merge(g.observeLocked(n))
	}
	return e
}

// forget drops the objects of a resource that is not followed any more. They
// may be there or not: nothing is known of them, so their dependents are
// verified.
func (g *graph) forget(resource schema.GroupVersionResource) effects {
	e := g.replace(resource, nil)
	e.absent = nil
	return e
}

func (e *effects) merge(other effects) {
	e.queue = append(e.queue, other.queue...)
	e.absent = append(e.absent, other.absent...)
	e.invalid = append(e.invalid, other.invalid...)
}

// get returns a node, or nil, and the nodes that refer to it.
func (g *graph) get(uid types.UID) (*node, []*node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil, nil
	}
	dependents := make([]*node, 0, len(g.dependents[uid]))
	for dependent := range g.dependents[uid] {
		dependents = append(dependents, g.nodes[dependent])
	}
	return n, dependents
}

// has reports whether an object has been observed and is not gone.
func (g *graph) has(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes[uid] != nil
}
