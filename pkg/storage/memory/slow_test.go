// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// writePod writes a new version of one pod.
func writePod(ctx context.Context, store storage.Interface, name, version string) error {
	return store.GuaranteedUpdate(ctx, "/pods/ns/"+name, &example.Pod{}, true, nil, updateTo(pod("ns", name, version), nil), nil)
}

// forEachLayer runs a test on the store itself, in both modes, and under the stock cacher.
func forEachLayer(t *testing.T, run func(t *testing.T, store storage.Interface, below *Store), change ...func(*Config)) {
	t.Helper()
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		store := newStore(t, change...)
		run(t, store, store)
	})
	t.Run("cacher", func(t *testing.T) {
		below := newTestStore(t, change...)
		cached := newCachedStore(t, below)
		run(t, cached, below)
		settle(t, cached)
	})
}

// TestWatchThatIsNotReadDelaysNobody has one watch that nobody reads while 200 others follow 500 updates, which is more than window and buffers hold. All of them
// see the end while the first still is not read, and that ends when it is read again, or resumes without a gap.
func TestWatchThatIsNotReadDelaysNobody(t *testing.T) {
	const readers, updates, window = 200, 500, 100
	forEachLayer(t, func(t *testing.T, store storage.Interface, below *Store) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		start := below.Revision()
		stuck, err := store.Watch(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(start)})
		if err != nil {
			t.Fatal(err)
		}
		defer stuck.Stop()
		var group sync.WaitGroup
		var pace [4]chan struct{} // the first readers let the writer go on, so that they need not expire
		for i := range pace {
			pace[i] = make(chan struct{}, resultBuffer)
		}
		for i := range readers {
			group.Go(func() {
				if err := readTo(ctx, store, start, start+updates, func() {
					if i < len(pace) {
						pace[i] <- struct{}{}
					}
				}); err != nil {
					t.Errorf("reader %d: %v", i, err)
				}
			})
		}
		for i := range updates {
			if err := writePod(ctx, below, fmt.Sprintf("p%d", i%7), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if i%resultBuffer == resultBuffer-1 {
				for range resultBuffer {
					for _, reader := range pace {
						select {
						case <-reader:
						case <-ctx.Done():
							t.Fatal("the readers do not follow")
						}
					}
				}
			}
		}
		group.Wait()
		// Only now the stuck one is read. What it lacks it does not hide.
		last := start
		for event := range stuck.ResultChan() {
			if event.Type == watch.Error {
				if _, ok := event.Object.(*metav1.Status); !ok {
					t.Errorf("ERROR with a %T", event.Object)
				}
				continue
			}
			revision, err := versioner.ObjectResourceVersion(event.Object)
			if err != nil || revision != last+1 {
				t.Fatalf("%d after %d, %v", revision, last, err)
			}
			last = revision
		}
		if last >= start+updates {
			t.Errorf("the watch that was not read has all %d events", updates)
		}
		if changes, slots := below.retained(); changes > window || slots >= changes+2*chunkSize {
			t.Errorf("%d changes and %d slots kept, want at most %d changes", changes, slots, window)
		}
	}, func(cfg *Config) { cfg.HistoryLimit = window })
}

// readTo follows all changes up to a revision, and resumes or begins anew where it must. seen is called once per revision.
func readTo(ctx context.Context, store storage.Interface, from, to uint64, seen func()) error {
	pass := func(revision uint64) {
		for ; from < revision; from++ {
			seen()
		}
	}
	for from < to {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("at %d: %w", from, err)
		}
		w, err := store.Watch(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(from)})
		if storage.IsTooLargeResourceVersion(err) {
			goruntime.Gosched() // the cacher is behind
			continue
		}
		anew := err != nil
		if !anew {
			anew, err = readWatch(w, from, to, pass)
			w.Stop()
			if err != nil {
				return err
			}
		}
		if !anew {
			continue
		}
		list := &example.PodList{}
		if err := store.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
			continue // the cacher fills itself anew
		}
		revision, err := versioner.ParseResourceVersion(list.ResourceVersion)
		if err != nil {
			return err
		}
		pass(revision)
	}
	return nil
}

func readWatch(w watch.Interface, from, to uint64, pass func(uint64)) (expired bool, err error) {
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return true, nil
		}
		if shared, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = shared.GetObject()
		}
		revision, err := versioner.ObjectResourceVersion(event.Object)
		if err != nil || revision != from+1 {
			return false, errors.Join(err, fmt.Errorf("revision %d after %d", revision, from))
		}
		from = revision
		if pass(revision); revision == to {
			break
		}
	}
	return false, nil
}

// TestManyObjects lists and watches 10,000 objects.
func TestManyObjects(t *testing.T) {
	const objects = 10_000
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		below := newStore(t)
		changes := make([]Change, objects)
		for i := range changes {
			name := fmt.Sprintf("p%05d", i)
			changes[i] = Change{Key: "/pods/ns/" + name, Object: pod("ns", name, "1")}
		}
		if _, err := below.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		for layer, store := range map[string]storage.Interface{"store": below, "cacher": newCachedStore(t, below)} {
			t.Run(layer, func(t *testing.T) {
				list, count := &example.PodList{}, 0
				opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
				for opts.Predicate.Limit = 3_000; ; opts.Predicate.Continue = list.Continue {
					list = &example.PodList{}
					if err := store.GetList(t.Context(), "/pods/", opts, list); err != nil {
						t.Fatal(err)
					}
					for i := range list.Items {
						if want := fmt.Sprintf("p%05d", count); list.Items[i].Name != want {
							t.Fatalf("item %d is %s, want %s", count, list.Items[i].Name, want)
						}
						count++
					}
					if list.Continue == "" {
						break
					}
				}
				if count != objects {
					t.Errorf("%d objects listed, want %d", count, objects)
				}
				opts = storage.ListOptions{Recursive: true, Predicate: storage.Everything, SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
				opts.Predicate.AllowWatchBookmarks = true
				w, err := store.Watch(t.Context(), "/pods/", opts)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				for i := range objects {
					if event := next(t, w); event.Type != watch.Added {
						t.Fatalf("initial event %d is %s", i, describe(event))
					}
				}
				if event := next(t, w); !strings.HasPrefix(describe(event), "END") {
					t.Errorf("after the initial events: %s", describe(event))
				}
			})
		}
	})
}

// TestLargeObject takes an object of a megabyte through everything.
func TestLargeObject(t *testing.T) {
	forEachLayer(t, func(t *testing.T, store storage.Interface, _ *Store) {
		large := strings.Repeat("0123456789abcdef", 1<<16)
		out := &example.Pod{}
		if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", large), out, 0); err != nil {
			t.Fatal(err)
		}
		w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: out.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := writePod(t.Context(), store, "a", large+"!"); err != nil {
			t.Fatal(err)
		}
		event := next(t, w)
		if shared, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = shared.GetObject()
		}
		list := &example.PodList{}
		if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
			t.Fatal(err)
		}
		if err := store.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, out); err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]*example.Pod{"event": event.Object.(*example.Pod), "item": &list.Items[0], "object": out} {
			if got.Annotations["version"] != large+"!" {
				t.Errorf("the %s has %d bytes, want %d, or others", what, len(got.Annotations["version"]), len(large)+1)
			}
		}
	})
}

// TestAbortedWatchesLeaveNothing opens 1,000 watches at once, which end in all the ways that there are, some before they
// have been read, and counts the goroutines.
func TestAbortedWatchesLeaveNothing(t *testing.T) {
	const watches = 1_000
	forEachLayer(t, func(t *testing.T, store storage.Interface, below *Store) {
		for i := range 50 {
			if err := writePod(t.Context(), store, fmt.Sprintf("p%d", i), "1"); err != nil {
				t.Fatal(err)
			}
		}
		before := goruntime.NumGoroutine()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var opened []watch.Interface
		for i := range watches {
			opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
			if i%3 == 0 {
				opts.SendInitialEvents, opts.ResourceVersionMatch, opts.Predicate.AllowWatchBookmarks = ptr.To(true), metav1.ResourceVersionMatchNotOlderThan, true
			}
			w, err := store.Watch(ctx, "/pods/", opts)
			if err != nil {
				t.Fatal(err)
			}
			opened = append(opened, w)
			switch i % 4 {
			case 0:
				w.Stop()
			case 1:
				<-w.ResultChan() // an event, or the end: the cacher is not patient
				w.Stop()
				w.Stop()
			}
		}
		for i := range 20 {
			if err := writePod(t.Context(), below, "p0", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		for i, w := range opened {
			if i%4 == 3 {
				for range w.ResultChan() { // what was buffered, then the end
				}
			}
			w.Stop()
		}
		eventually(t, "the goroutines of the watches end", func() bool { return goruntime.NumGoroutine() <= before })
	})
}
