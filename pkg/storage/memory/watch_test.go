// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// describe is TYPE name@resourceVersion=version, and END for the bookmark that ends initial events.
func describe(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Sprintf("%s %v", event.Type, event.Object)
	}
	if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		return "END @" + object.GetResourceVersion()
	}
	if event.Type == watch.Bookmark {
		return "BOOKMARK @" + object.GetResourceVersion()
	}
	return fmt.Sprintf("%s %s@%s=%s", event.Type, object.GetName(), object.GetResourceVersion(), object.GetAnnotations()["version"])
}

func expectEvents(t testing.TB, w watch.Interface, want ...string) {
	t.Helper()
	got := []string{}
	for range want {
		got = append(got, describe(next(t, w)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}

func TestWatchTranslatesSelection(t *testing.T) {
	store := newTestStore(t)
	labelled := func(name, version, value string) Change {
		object := pod("ns", name, version)
		object.Labels = map[string]string{"in": value}
		return Change{Key: "/pods/ns/" + name, Object: object}
	}
	selector := storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"in": "yes"}), Field: fields.Everything(), GetAttrs: podAttrs}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: selector, ResourceVersion: "1"})
	if _, err := store.Apply(
		labelled("a", "1", "no"),      // 2: never seen
		labelled("a", "2", "yes"),     // 3: enters
		labelled("a", "3", "yes"),     // 4: stays
		labelled("a", "4", "no"),      // 5: leaves, as it was last seen
		labelled("a", "5", "no"),      // 6
		Change{Key: "/pods/ns/a"},     // 7: gone unseen
		labelled("b", "1", "yes"),     // 8
		Change{Key: "/pods/ns/b"},     // 9
		labelled("/../c", "1", "yes"), // refused, with all of the batch
	); err == nil {
		t.Fatal("Apply took a key with a parent directory")
	}
	if _, err := store.Apply(
		labelled("a", "1", "no"), labelled("a", "2", "yes"), labelled("a", "3", "yes"), labelled("a", "4", "no"),
		labelled("a", "5", "no"), Change{Key: "/pods/ns/a"}, labelled("b", "1", "yes"), Change{Key: "/pods/ns/b"},
	); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, w, "ADDED a@3=2", "MODIFIED a@4=3", "DELETED a@5=3", "ADDED b@8=1", "DELETED b@9=1")
}

func TestWatchStartsWhereItIsAskedTo(t *testing.T) {
	for _, test := range []struct {
		name            string
		resourceVersion string
		initial         *bool
		bookmarks       bool
		want            []string
	}{
		{"unset", "", nil, false, []string{"ADDED a@4=2", "ADDED b@3=1", "ADDED c@5=1"}},
		{"zero", "0", nil, true, []string{"ADDED a@4=2", "ADDED b@3=1", "ADDED c@5=1"}},
		{"from a revision", "2", nil, true, []string{"ADDED b@3=1", "MODIFIED a@4=2", "ADDED c@5=1"}},
		{"from the present", "4", nil, true, []string{"ADDED c@5=1"}},
		{"no initial events", "", ptr.To(false), true, []string{"ADDED c@5=1"}},
		{"no initial events, from a revision", "3", ptr.To(false), true, []string{"MODIFIED a@4=2", "ADDED c@5=1"}},
		{"initial events", "", ptr.To(true), true, []string{"ADDED a@4=2", "ADDED b@3=1", "END @4", "ADDED c@5=1"}},
		{"initial events, not older", "2", ptr.To(true), true, []string{"ADDED a@4=2", "ADDED b@3=1", "END @4", "ADDED c@5=1"}},
		{"initial events without bookmarks", "0", ptr.To(true), false, []string{"ADDED a@4=2", "ADDED b@3=1", "ADDED c@5=1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newTestStore(t)
			if _, err := store.Apply(
				Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")},
				Change{Key: "/pods/ns/b", Object: pod("ns", "b", "1")},
				Change{Key: "/pods/ns/a", Object: pod("ns", "a", "2")},
			); err != nil {
				t.Fatal(err)
			}
			opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: test.resourceVersion, SendInitialEvents: test.initial}
			opts.Predicate.AllowWatchBookmarks = test.bookmarks
			w := mustWatch(t, store, opts)
			if _, err := store.Apply(Change{Key: "/pods/ns/c", Object: pod("ns", "c", "1")}); err != nil {
				t.Fatal(err)
			}
			expectEvents(t, w, test.want...)
		})
	}
}

func TestWatchFromTheFutureIsRefused(t *testing.T) {
	store := newTestStore(t)
	for _, initial := range []*bool{nil, ptr.To(true), ptr.To(false)} {
		_, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "2", SendInitialEvents: initial})
		if !storage.IsTooLargeResourceVersion(err) {
			t.Errorf("SendInitialEvents %v: %v, want too large", initial, err)
		}
	}
}

func TestWatchOfOneKeySeesThatKeyAlone(t *testing.T) {
	store := newTestStore(t)
	w, err := store.Watch(t.Context(), "/pods/ns/a", storage.ListOptions{Predicate: storage.Everything, ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := store.Apply(
		Change{Key: "/pods/ns/ab", Object: pod("ns", "ab", "1")},
		Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")},
		Change{Key: "/pods/ns/a"},
	); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, w, "ADDED a@3=1", "DELETED a@4=1")
}

func TestBookmarksFollowAllEarlierEvents(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	store := newTestStore(t, func(cfg *Config) { cfg.Clock = clock })
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1", ProgressNotify: true}
	w := mustWatch(t, store, opts)
	opts.ProgressNotify = false
	plain := mustWatch(t, store, opts)

	var changes []Change
	var want []string
	for i := range 2 * chunkSize {
		name := fmt.Sprintf("p%04d", i)
		changes = append(changes, Change{Key: "/pods/ns/" + name, Object: pod("ns", name, "1")})
		want = append(want, fmt.Sprintf("ADDED %s@%d=1", name, i+2))
	}
	if _, err := store.Apply(changes...); err != nil {
		t.Fatal(err)
	}
	if err := store.RequestWatchProgress(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, w, append(want, fmt.Sprintf("BOOKMARK @%d", 2*chunkSize+1))...)
	store.Advance(1_000)
	for !clock.HasWaiters() {
		<-time.After(time.Millisecond)
	}
	clock.Step(progressInterval)
	expectEvents(t, w, "BOOKMARK @1000")
	if _, err := store.Apply(Change{Key: "/pods/ns/z", Object: pod("ns", "z", "1")}); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, w, "ADDED z@1001=1")
	expectEvents(t, plain, append(want, "ADDED z@1001=1")...)
}

func TestRecordTimestampsWrapChangesOnly(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_000, 0))
	store := newTestStore(t, func(cfg *Config) { cfg.Clock = clock })
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err != nil {
		t.Fatal(err)
	}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, RecordTimestamps: true})
	if _, ok := next(t, w).Object.(*example.Pod); !ok {
		t.Error("an initial event is wrapped")
	}
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "2")}); err != nil {
		t.Fatal(err)
	}
	event := next(t, w)
	timed, ok := event.Object.(storage.WatchEventWithRecordTime)
	if !ok {
		t.Fatalf("a change came as %T", event.Object)
	}
	if !timed.RecordTime().Equal(clock.Now()) {
		t.Errorf("recorded at %v, want %v", timed.RecordTime(), clock.Now())
	}
	if got := describe(event); got != "MODIFIED a@3=2" {
		t.Errorf("got %s", got)
	}
}

func TestWatchEndsWithItsContextAndWithTheStore(t *testing.T) {
	store := newTestStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, err := store.Watch(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, open := <-cancelled.ResultChan(); open {
		t.Error("an event came from a watch whose context is cancelled")
	}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1"})
	store.Stop()
	if _, open := <-w.ResultChan(); open {
		t.Error("an event came from a stopped store")
	}
	if _, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}); err == nil {
		t.Error("a stopped store took a watch")
	}
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err == nil {
		t.Error("a stopped store took a write")
	}
	if store.ReadinessCheck() == nil {
		t.Error("a stopped store is ready")
	}
}
