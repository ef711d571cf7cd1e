// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"testing"

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
