// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// contents lists the store as name@resourceVersion=version.
func contents(t testing.TB, store *Store) []string {
	t.Helper()
	list := &example.PodList{}
	if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for i := range list.Items {
		item := &list.Items[i]
		out = append(out, fmt.Sprintf("%s@%s=%s", item.Name, item.ResourceVersion, item.Annotations["version"]))
	}
	return out
}

func TestApplyCommitsOneRevisionPerChange(t *testing.T) {
	put := func(name, version string, revision uint64) Change {
		return Change{Key: "/pods/ns/" + name, Object: pod("ns", name, version), Revision: revision}
	}
	remove := func(name string, revision uint64) Change {
		return Change{Key: "/pods/ns/" + name, Revision: revision}
	}
	for _, test := range []struct {
		name     string
		changes  []Change
		fails    bool
		revision uint64
		want     []string
	}{
		{name: "nothing", revision: 11, want: []string{"old@11=0"}},
		{name: "put", changes: []Change{put("a", "1", 0)}, revision: 12, want: []string{"a@12=1", "old@11=0"}},
		{name: "the same key twice", changes: []Change{put("a", "1", 0), put("a", "2", 0)}, revision: 13, want: []string{"a@13=2", "old@11=0"}},
		{name: "put and delete", changes: []Change{put("a", "1", 0), remove("a", 0)}, revision: 13, want: []string{"old@11=0"}},
		{name: "deleting what is not there takes no revision", changes: []Change{remove("x", 0), put("a", "1", 0)}, revision: 12, want: []string{"a@12=1", "old@11=0"}},
		{name: "delete and create again", changes: []Change{remove("old", 0), put("old", "1", 0)}, revision: 13, want: []string{"old@13=1"}},
		{name: "given revisions", changes: []Change{put("a", "1", 20), put("b", "1", 30)}, revision: 30, want: []string{"a@20=1", "b@30=1", "old@11=0"}},
		{name: "given, then counted", changes: []Change{put("a", "1", 20), put("b", "1", 0)}, revision: 21, want: []string{"a@20=1", "b@21=1", "old@11=0"}},
		{name: "given after a deletion that is none", changes: []Change{remove("x", 0), put("a", "1", 12)}, revision: 12, want: []string{"a@12=1", "old@11=0"}},
		{name: "given and not larger", changes: []Change{put("a", "1", 11)}, fails: true, revision: 11, want: []string{"old@11=0"}},
		{name: "given and not larger than the one before", changes: []Change{put("a", "1", 0), put("b", "1", 12)}, fails: true, revision: 11, want: []string{"old@11=0"}},
		{name: "a key of another resource", changes: []Change{put("a", "1", 0), {Key: "/services/ns/a", Object: pod("ns", "a", "1")}}, fails: true, revision: 11, want: []string{"old@11=0"}},
		{name: "an object of another type", changes: []Change{put("a", "1", 0), {Key: "/pods/ns/b", Object: &example.ReplicaSet{}}}, fails: true, revision: 11, want: []string{"old@11=0"}},
		{name: "a nil object of the right type", changes: []Change{{Key: "/pods/ns/b", Object: (*example.Pod)(nil)}}, fails: true, revision: 11, want: []string{"old@11=0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newTestStore(t, func(cfg *Config) { cfg.InitialRevision = 10 })
			if _, err := store.Apply(put("old", "0", 0)); err != nil {
				t.Fatal(err)
			}
			revision, err := store.Apply(test.changes...)
			if (err != nil) != test.fails {
				t.Errorf("error %v, want one: %v", err, test.fails)
			}
			if revision != test.revision || store.Revision() != test.revision {
				t.Errorf("returned revision %d, store has %d, want %d", revision, store.Revision(), test.revision)
			}
			if diff := cmp.Diff(test.want, contents(t, store)); diff != "" {
				t.Errorf("contents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyShowsBatchesWhole(t *testing.T) {
	store := newTestStore(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			version := fmt.Sprint(i)
			if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", version)}, Change{Key: "/pods/ns/b", Object: pod("ns", "b", version)}); err != nil {
				t.Error(err)
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		list := &example.PodList{}
		if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 2 && list.Items[0].Annotations["version"] != list.Items[1].Annotations["version"] {
			t.Fatalf("LIST saw a half of a batch: %v", list.Items)
		}
	}
}

func TestAdvanceRaisesTheRevisionOnly(t *testing.T) {
	store := newTestStore(t)
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err != nil {
		t.Fatal(err)
	}
	store.Advance(100)
	store.Advance(50)
	if got := store.Revision(); got != 100 {
		t.Errorf("revision %d, want 100", got)
	}
	if diff := cmp.Diff([]string{"a@2=1"}, contents(t, store)); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "60"})
	if revision, err := store.Apply(Change{Key: "/pods/ns/a"}); err != nil || revision != 101 {
		t.Fatalf("Apply: %d, %v", revision, err)
	}
	if event := next(t, w); event.Type != watch.Deleted || event.Object.(*example.Pod).ResourceVersion != "101" {
		t.Errorf("got %s at %s, want DELETED at 101", event.Type, event.Object.(*example.Pod).ResourceVersion)
	}
}

func TestResetReplacesEverything(t *testing.T) {
	store := newTestStore(t, func(cfg *Config) { cfg.InitialRevision = 1_000 })
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err != nil {
		t.Fatal(err)
	}
	open := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1001"})

	reported := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // one of the objects is bad on purpose
	b := pod("ns", "b", "1")
	b.ResourceVersion = "20"
	store.Reset(30, map[string]runtime.Object{"/pods/ns/b": b, "/pods/ns/c": pod("ns", "c", "1"), "/nodes/x": pod("ns", "x", "1")})
	utilruntime.ErrorHandlers = reported

	if diff := cmp.Diff([]string{"b@20=1", "c@30=1"}, contents(t, store)); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if got := store.Revision(); got != 30 {
		t.Errorf("revision %d, want 30", got)
	}
	expectExpired(t, open)
	expectExpired(t, mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "29"}))
	if _, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "1001"}); !storage.IsTooLargeResourceVersion(err) {
		t.Errorf("a watch from a revision of before: %v, want too large", err)
	}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "30"})
	if _, err := store.Apply(Change{Key: "/pods/ns/b"}); err != nil {
		t.Fatal(err)
	}
	if event := next(t, w); event.Type != watch.Deleted || event.Object.(*example.Pod).ResourceVersion != "31" {
		t.Errorf("got %v, want DELETED at 31", event)
	}
}

func TestDeletedObjectSharesAllButItsRevision(t *testing.T) {
	store := newTestStore(t)
	object := pod("ns", "a", "1")
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: object}); err != nil {
		t.Fatal(err)
	}
	w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "2"})
	if _, err := store.Apply(Change{Key: "/pods/ns/a"}); err != nil {
		t.Fatal(err)
	}
	got := next(t, w).Object.(*example.Pod)
	want := object.DeepCopy()
	want.ResourceVersion = "3"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DELETED object (-want +got):\n%s", diff)
	}
	if object.ResourceVersion != "2" {
		t.Errorf("the object in the log was changed to %s", object.ResourceVersion)
	}
	got.Annotations["version"] = "shared" // allowed here alone: it shows that the map was not copied
	if object.Annotations["version"] != "shared" {
		t.Error("the DELETED object is a deep copy")
	}
}

func TestDeletedUnstructuredLeavesTheOriginalAlone(t *testing.T) {
	original := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "resourceVersion": "2"}, "spec": map[string]any{"x": "y"}}}
	unchanged := original.DeepCopy()
	got, err := atRevision(original, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unchanged, original); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
	if version := got.(metav1.Object).GetResourceVersion(); version != "3" {
		t.Errorf("resourceVersion %s, want 3", version)
	}
}

func mustWatch(t testing.TB, store *Store, opts storage.ListOptions) watch.Interface {
	t.Helper()
	w, err := store.Watch(t.Context(), "/pods/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(wait.ForeverTestTimeout):
		t.Fatal("no event")
	}
	return watch.Event{}
}

func expectExpired(t testing.TB, w watch.Interface) {
	t.Helper()
	event := next(t, w)
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Fatalf("got %v, want 410 Expired", event)
	}
	if _, open := <-w.ResultChan(); open {
		t.Error("something came after the ERROR event")
	}
}
