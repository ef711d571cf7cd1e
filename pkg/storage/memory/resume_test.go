// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// replay builds a state from the events of a watch, and refuses what cannot follow: a revision that does not rise, an
// ADDED for what exists, a MODIFIED or DELETED for what does not.
type replay struct {
	revision uint64
	state    map[string]string
	events   int
}

func newReplay(revision uint64) *replay {
	return &replay{revision: revision, state: map[string]string{}}
}

func (r *replay) take(event watch.Event) (expired bool, err error) {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		if apierrors.IsResourceExpired(err) {
			return true, nil
		}
		return false, fmt.Errorf("the watch ended: %w", err)
	}
	revision, err := versioner.ObjectResourceVersion(event.Object)
	if err != nil {
		return false, err
	}
	if event.Type == watch.Bookmark {
		if revision < r.revision {
			return false, fmt.Errorf("bookmark %d after %d", revision, r.revision)
		}
		r.revision = revision
		return false, nil
	}
	if revision <= r.revision {
		return false, fmt.Errorf("%s at %d after %d", event.Type, revision, r.revision)
	}
	r.revision = revision
	r.events++
	object := event.Object.(*example.Pod)
	key := "/pods/" + object.Namespace + "/" + object.Name
	if _, exists := r.state[key]; exists == (event.Type == watch.Added) {
		return false, fmt.Errorf("%s of %s, which exists: %v", event.Type, key, exists)
	}
	if event.Type == watch.Deleted {
		delete(r.state, key)
	} else {
		r.state[key] = object.Annotations["version"]
	}
	return false, nil
}

// TestWatchResumesExactly lets watches of several speeds break off at random places and resume from what they saw last,
// while a writer writes and the window moves. Each must have seen every change once, or have been told 410 Expired, after
// which it begins anew as a reflector does.
func TestWatchResumesExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const changes, readers = 6_000, 6
	store := newTestStore(t, func(cfg *Config) { cfg.HistoryLimit = 400 })
	start := store.Revision()
	end := start + changes

	var mu sync.Mutex
	states := map[uint64]map[string]string{start: {}}
	stateAt := func(revision uint64) map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return states[revision]
	}
	var group sync.WaitGroup
	group.Go(func() {
		random := rand.New(rand.NewPCG(seed, 0))
		current := map[string]string{}
		for revision := start + 1; revision <= end; revision++ {
			name := fmt.Sprintf("p%d", random.IntN(20))
			key := "/pods/ns/" + name
			change := Change{Key: key}
			if _, exists := current[key]; exists && random.IntN(3) == 0 {
				delete(current, key)
			} else {
				current[key] = fmt.Sprint(revision)
				change.Object = pod("ns", name, current[key])
			}
			mu.Lock()
			states[revision] = maps.Clone(current)
			mu.Unlock()
			if _, err := store.Apply(change); err != nil {
				panic(err) // the readers would wait for ever
			}
			if revision%10 == 0 { // let the fast readers keep up; the slow one must not
				<-time.After(100 * time.Microsecond)
			}
		}
	})
	expirations := make([]int, readers)
	for reader := range readers {
		group.Go(func() {
			expirations[reader] = follow(t, store, rand.New(rand.NewPCG(seed, uint64(reader+1))), reader, start, end, stateAt)
		})
	}
	group.Wait()
	t.Logf("expired and began anew: %v", expirations)
}

// follow reads until end; a larger reader breaks off more often, and reader 0 is slow.
func follow(t *testing.T, store *Store, random *rand.Rand, reader int, start, end uint64, stateAt func(uint64) map[string]string) (expirations int) {
	seen := newReplay(start)
	anew := false
	for seen.revision < end {
		opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(seen.revision)}
		if anew {
			list := &example.PodList{}
			if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
				t.Errorf("reader %d: LIST: %v", reader, err)
				return expirations
			}
			opts.ResourceVersion = list.ResourceVersion
			revision, _ := versioner.ParseResourceVersion(list.ResourceVersion)
			seen = newReplay(revision)
			for i := range list.Items {
				seen.state["/pods/ns/"+list.Items[i].Name] = list.Items[i].Annotations["version"]
			}
			anew = false
			continue
		}
		w, err := store.Watch(t.Context(), "/pods/", opts)
		if err != nil {
			t.Errorf("reader %d: Watch: %v", reader, err)
			return expirations
		}
		quit := 1 + random.IntN(1+3_000/(reader+1))
		for event := range w.ResultChan() {
			expired, err := seen.take(event)
			if err != nil {
				t.Errorf("reader %d: %v", reader, err)
				w.Stop()
				return expirations
			}
			if expired {
				expirations++
				anew = true
				break
			}
			if diff := cmp.Diff(stateAt(seen.revision), seen.state); diff != "" {
				t.Errorf("reader %d at %d (-want +got):\n%s", reader, seen.revision, diff)
				w.Stop()
				return expirations
			}
			if quit--; quit == 0 || seen.revision == end {
				break
			}
			if reader == 0 {
				<-time.After(time.Millisecond)
			}
		}
		w.Stop()
	}
	return expirations
}

// TestSlowWatchExpires checks that a watch that nobody reads blocks no writer, and is told so when it is read again.
func TestSlowWatchExpires(t *testing.T) {
	store := newTestStore(t, func(cfg *Config) { cfg.HistoryLimit = 50 })
	w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	const changes = resultBuffer + 3*chunkSize
	for i := range changes {
		if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	seen := newReplay(1)
	for event := range w.ResultChan() {
		expired, err := seen.take(event)
		if err != nil {
			t.Fatal(err)
		}
		if expired {
			if _, open := <-w.ResultChan(); open {
				t.Error("something came after the ERROR event")
			}
			if seen.events >= changes {
				t.Errorf("the watch expired after it had delivered all %d changes", changes)
			}
			return
		}
		if want := uint64(seen.events) + 1; seen.revision != want {
			t.Fatalf("event %d has revision %d, want %d: one was left out", seen.events, seen.revision, want)
		}
	}
	t.Error("the watch ended without 410 Expired")
}
