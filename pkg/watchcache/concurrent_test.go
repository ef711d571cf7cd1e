// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// TestConcurrentEventsEndInTheFilteredUpstream feeds a view from one goroutine
// for each list-and-watch of upstream, as the feed does, while others read.
func TestConcurrentEventsEndInTheFilteredUpstream(t *testing.T) {
	seed := *randomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("objects of seed %d, in an order that is not repeatable", seed)
	f := newConcurrentFeed(t, seed)
	var readers, followers, feeders sync.WaitGroup
	for _, kind := range viewKinds {
		followers.Go(func() { f.follow(kind) })
		readers.Go(func() { f.list(kind) })
	}
	readers.Go(f.ask)
	domains := newGenerator(seed, 1)
	readers.Go(func() {
		for !isClosed(f.done) {
			f.deliver(domains)
		}
	})
	f.feed(&feeders)
	feeders.Wait()
	close(f.done)
	readers.Wait()
	f.deliver(domains)
	for _, store := range f.stores {
		if err := store.RequestWatchProgress(t.Context()); err != nil {
			t.Error(err)
		}
	}
	followers.Wait()

	f.reference.published, f.reference.publishedEndpoints = true, true
	wantServices, wantSlices, wantEndpoints := f.reference.byDefinition(f.nodes)
	for i, want := range []contents{wantServices, wantSlices, wantEndpoints} {
		kind := viewKinds[i]
		got := f.contents(kind)
		if err := sameContents(got, want); err != nil {
			t.Errorf("%s: %v", kind.resource, err)
		}
		if err := sameContents(f.followed[kind.resource], got); err != nil {
			t.Errorf("watch of %s: %v", kind.resource, err)
		}
	}
}

// concurrentFeed is a view and those who feed it. What was told is in the
// reference; each map there is written by one feeder.
type concurrentFeed struct {
	t         *testing.T
	seed      uint64
	start     uint64 // the first revision of the stores
	view      *View
	domains   *fakeDomains
	stores    map[string]*memory.Store
	reference *reference
	done      chan struct{} // closed when all events were fed

	mu       sync.Mutex
	nodes    map[string]map[string]string
	followed map[string]contents // by the watches
}

func newConcurrentFeed(t *testing.T, seed uint64) *concurrentFeed {
	t.Helper()
	ctx := klog.NewContext(t.Context(), klog.New(nil))
	revisions := NewRevisions(ctx, &memoryFloor{}, time.Now())
	f := &concurrentFeed{
		t: t, seed: seed, start: revisions.Start(), domains: &fakeDomains{}, stores: map[string]*memory.Store{}, reference: newReference(nil),
		done: make(chan struct{}), nodes: map[string]map[string]string{}, followed: map[string]contents{},
	}
	for _, kind := range viewKinds {
		store, err := kind.newStore(revisions.Start(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Stop)
		f.stores[kind.resource] = store
	}
	f.view = NewView(ctx, ViewConfig{
		NodeName: ownNode, Services: f.stores["services"], EndpointSlices: f.stores["endpointslices"], Endpoints: f.stores["endpoints"],
		Revisions: revisions, Domains: f.domains,
	})
	return f
}

// feed starts the feeders.
func (f *concurrentFeed) feed(feeders *sync.WaitGroup) {
	const events = 300
	view, told := f.view, f.reference
	feeders.Go(func() {
		g := newGenerator(f.seed, 2)
		feedObjects(g, events, told.services, serviceNames, g.service, view.SetService, view.DeleteService, view.ReplaceServices)
	})
	feeders.Go(func() {
		g := newGenerator(f.seed, 3)
		feedObjects(g, events, told.slices, sliceNames, g.slice, view.SetEndpointSlice, view.DeleteEndpointSlice, view.ReplaceEndpointSlices)
	})
	feeders.Go(func() {
		g := newGenerator(f.seed, 4)
		feedObjects(g, events, told.endpoints, serviceNames, g.endpoints, view.SetEndpoints, view.DeleteEndpoints, view.ReplaceEndpoints)
	})
	feeders.Go(func() {
		g := newGenerator(f.seed, 5)
		for range events {
			told.kubernetes = g.kubernetesAnnotations()
			view.SetKubernetesAnnotations(maps.Clone(told.kubernetes))
		}
	})
	feeders.Go(func() {
		g := newGenerator(f.seed, 6)
		for range events {
			labels, name := g.labels(), pick(g, allNodes)
			f.mu.Lock()
			f.nodes[name] = labels
			f.mu.Unlock()
			if name == ownNode || told.own == nil {
				told.own = labels
				view.SetOwnLabels(maps.Clone(labels))
			}
		}
	})
}

func feedObjects[T object](g generator, events int, told map[types.NamespacedName]T, names []types.NamespacedName,
	generate func() T, set func(T), remove func(types.NamespacedName, string), replace func([]T)) {
	replace(nil)
	for i := range events {
		obj := generate()
		obj.SetResourceVersion(strconv.Itoa(i + 1))
		told[keyOf(obj)] = obj
		switch g.IntN(8) {
		default:
			set(obj.DeepCopyObject().(T))
		case 6:
			delete(told, keyOf(obj))
			remove(keyOf(obj), strconv.Itoa(i+1))
		case 7:
			delete(told, pick(g, names))
			var all []T
			for _, name := range shuffled(g, sortedKeys(told)) {
				all = append(all, told[name].DeepCopyObject().(T))
			}
			replace(all)
		}
	}
}

// deliver brings the domain watches up to date, in random order.
func (f *concurrentFeed) deliver(g generator) {
	for again := true; again; {
		again = false
		for _, w := range shuffled(g, f.domains.open()) {
			var members []string
			f.mu.Lock()
			for _, name := range allNodes {
				if value, ok := f.nodes[name][w.key]; ok && value == w.value {
					members = append(members, name)
				}
			}
			f.mu.Unlock()
			if w.members == nil || g.oneIn(8) {
				again = again || w.members == nil // which can have others opened
				w.replace(members)
				w.sink.Replace(members)
				continue
			}
			for _, name := range shuffled(g, allNodes) {
				if w.members[name] = slices.Contains(members, name); w.members[name] {
					w.sink.Add(name)
				} else {
					w.sink.Delete(name)
				}
			}
		}
	}
}

// follow is a client that watches from the first revision to the last.
func (f *concurrentFeed) follow(kind storeKind) {
	store, have := f.stores[kind.resource], contents{}
	opts := storage.ListOptions{
		Predicate: storage.Everything, Recursive: true, ProgressNotify: true, ResourceVersion: strconv.FormatUint(f.start, 10),
	}
	w, err := store.Watch(f.t.Context(), "/"+kind.resource+"/", opts)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer w.Stop()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.followed[kind.resource] = have
	}()
	for last := f.start; ; {
		var event watch.Event
		select {
		case event = <-w.ResultChan():
		case <-time.After(clientDeadline):
			f.t.Errorf("watch of %s: nothing comes after revision %d", kind.resource, last)
			return
		}
		obj, ok := event.Object.(object)
		if !ok {
			f.t.Errorf("watch of %s: %v", kind.resource, event)
			return
		}
		at := versionOf(obj).revision
		switch event.Type {
		case watch.Bookmark:
			if isClosed(f.done) && at == store.Revision() {
				return
			}
			continue
		case watch.Deleted:
			delete(have, keyOf(obj))
		default:
			if _, known := have[keyOf(obj)]; known != (event.Type == watch.Modified) {
				f.t.Errorf("watch of %s: %s %s, known: %t", kind.resource, event.Type, keyOf(obj), known)
			}
			have[keyOf(obj)] = obj
		}
		if at != last+1 {
			f.t.Errorf("watch of %s: %s %s@%d comes after revision %d", kind.resource, event.Type, keyOf(obj), at, last)
		}
		last = at
	}
}

// list lists again and again: revisions never go back.
func (f *concurrentFeed) list(kind storeKind) {
	for last := uint64(0); !isClosed(f.done); {
		into := kind.newList()
		if err := f.stores[kind.resource].GetList(f.t.Context(), "/"+kind.resource+"/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, into); err != nil {
			f.t.Error(err)
			return
		}
		list, err := meta.ListAccessor(into)
		if err != nil {
			f.t.Error(err)
			return
		}
		revision, err := strconv.ParseUint(list.GetResourceVersion(), 10, 64)
		if err != nil || revision < last {
			f.t.Errorf("LIST of %s at revision %q after %d", kind.resource, list.GetResourceVersion(), last)
		}
		last = revision
	}
}

// ask calls what the server asks a view.
func (f *concurrentFeed) ask() {
	for !isClosed(f.done) {
		f.view.Synced()
		f.view.Differs(EndpointSlices, "default", "s-1")
		f.view.Differs(Endpoints, "default", "s")
	}
}

// contents lists a resource.
func (f *concurrentFeed) contents(kind storeKind) contents {
	into, have := kind.newList(), contents{}
	if err := f.stores[kind.resource].GetList(context.Background(), "/"+kind.resource+"/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, into); err != nil {
		f.t.Fatal(err)
	}
	if err := eachItem(into, func(obj object) { have[keyOf(obj)] = obj }); err != nil {
		f.t.Fatal(err)
	}
	return have
}
