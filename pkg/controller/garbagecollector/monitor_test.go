// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// changedDiscovery hides resources, or fails.
type changedDiscovery struct {
	Discovery
	mu     sync.Mutex
	hidden string
	failed *schema.GroupVersion
	err    error
}

func (d *changedDiscovery) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *changedDiscovery) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := d.Discovery.ServerGroupsAndResourcesWithContext(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = d.err
	}
	if d.failed != nil {
		err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{*d.failed: errors.New("away")}}
	}
	var shown []*metav1.APIResourceList
	for _, list := range lists {
		if d.failed != nil && list.GroupVersion == d.failed.String() {
			continue
		}
		kept := &metav1.APIResourceList{GroupVersion: list.GroupVersion}
		for _, r := range list.APIResources {
			if r.Name != d.hidden {
				kept.APIResources = append(kept.APIResources, r)
			}
		}
		shown = append(shown, kept)
	}
	return groups, shown, err
}

func TestKindsComeAndGo(t *testing.T) {
	f := start(t, 0)
	shown := &changedDiscovery{Discovery: f.collector.discovery, hidden: "replicasets"}
	discover := make(chan struct{})
	collector, err := New(f.metadata, shown, Options{Interval: time.Hour, Discover: discover})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- collector.Run(ctx, 2) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	f.eventually("the collector has synced", collector.HasSynced)

	// Its dependents wait for a kind that is unknown.
	set := f.create(replicaSets, "a", "rs")
	pod := f.create(pods, "a", "p", set.ref(false))
	f.eventually("it was tried", func() bool { return collector.queue.NumRequeues(pod.uid) > 0 })
	if collector.graph.has(set.uid) {
		t.Fatal("a hidden kind is followed")
	}
	shown.set(func() { shown.hidden = "" })
	discover <- struct{}{}
	f.eventually("the new kind is followed", func() bool { return collector.graph.has(set.uid) })
	f.delete(set, background)
	f.gone(set, pod)

	// A group that cannot be discovered stays, and so does all if nothing can.
	deployment := f.create(deployments, "a", "d")
	f.eventually("the deployment is followed", func() bool { return collector.graph.has(deployment.uid) })
	shown.set(func() { shown.failed = &schema.GroupVersion{Group: "apps", Version: "v1"} })
	if err := collector.monitors.sync(ctx); err != nil {
		t.Error(err)
	}
	shown.set(func() { shown.failed, shown.err = nil, errors.New("away") })
	if err := collector.monitors.sync(ctx); err == nil {
		t.Error("no error of a discovery that failed")
	}
	if !collector.graph.has(deployment.uid) {
		t.Error("the deployment is not followed any more")
	}

	// A kind that is gone leaves nothing behind.
	shown.set(func() { shown.err, shown.hidden = nil, "deployments" })
	if err := collector.monitors.sync(ctx); err != nil {
		t.Error(err)
	}
	if collector.graph.has(deployment.uid) {
		t.Error("an object of a kind that is gone is still there")
	}
}

// TestLateNewsOfAnotherVersionAreForgotten has the monitor of a version that is
// not followed any more tell of an object while it ends.
func TestLateNewsOfAnotherVersionAreForgotten(t *testing.T) {
	f := start(t, 0)
	set := f.create(replicaSets, "a", "rs")
	metadata := f.get(set)
	m := f.collector.monitors
	older := replicaSets.GroupResource().WithVersion("v1beta1")
	old := &monitor{monitors: m, ctx: t.Context(), resource: older, gvk: older.GroupVersion().WithKind("ReplicaSet"), filled: make(chan struct{})}
	if err := old.Replace([]any{metadata}, ""); err != nil {
		t.Fatal(err)
	}
	successor := func() *monitor {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.running[replicaSets]
	}
	ended := false
	old.stop = func() {
		if successor := successor(); successor != nil {
			<-successor.filled // the new version is in the graph
		}
		if err := old.Update(metadata); err != nil {
			t.Error(err)
		}
		ended = true
	}
	m.running[older] = old
	defer m.stop()
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-successor().filled
	if !ended {
		t.Error("the old monitor was not stopped")
	}
	n, _ := f.collector.graph.get(set.uid)
	if n == nil {
		t.Fatal("an object that exists is not followed any more")
	}
	if n.resource != replicaSets {
		t.Errorf("it is followed as %s, want %s", n.resource, replicaSets)
	}
}

func TestOrphansThatWereNotSeenStay(t *testing.T) {
	f := start(t, 0)
	owner := f.create(replicaSets, "a", "rs")
	pod := f.create(pods, "a", "p", owner.ref(true))
	f.delete(owner, orphan)
	// The kinds are known, the graph has heard of the owner alone.
	groups, lists, err := f.collector.discovery.ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.collector.monitors.kinds = newKinds(groups, lists, nil)
	object := f.get(owner)
	f.collector.graph.observe(newNode(replicaSets, replicaSets.GroupVersion().WithKind("ReplicaSet"), object))
	if settled, err := f.collector.process(t.Context(), owner.uid); !settled || err != nil {
		t.Fatalf("settled %v, %v", settled, err)
	}
	if f.get(owner) != nil {
		t.Error("the owner is still there")
	}
	f.there(nil, pod)
}
