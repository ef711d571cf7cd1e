// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// mirrorFixture is a mirror of Namespaces with a watch of its store.
type mirrorFixture struct {
	t      *testing.T
	store  *memory.Store
	mirror *Mirror
	watch  watch.Interface
}

// newMirrorFixture returns a mirror that has seen its first list, a and b at
// revision 20, and is watched since.
func newMirrorFixture(t *testing.T) *mirrorFixture {
	t.Helper()
	store, err := memory.New(memory.Config{
		GroupResource: Namespaces, ResourcePrefix: "/namespaces", InitialRevision: 1,
		NewFunc: func() runtime.Object { return &corev1.Namespace{} }, NewListFunc: func() runtime.Object { return &corev1.NamespaceList{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	f := &mirrorFixture{t: t, store: store, mirror: NewMirror(t.Context(), "namespaces", store)}
	if isClosed(f.mirror.Filled()) {
		t.Error("filled before the first list")
	}
	f.mirror.Replace(namespacesAt("a@11", "b@12"), "20")
	if !isClosed(f.mirror.Filled()) || store.Revision() != 20 {
		t.Errorf("filled %t at revision %d after the first list", isClosed(f.mirror.Filled()), store.Revision())
	}
	f.wantPastExpired(20)
	if f.watch, err = store.Watch(t.Context(), "/namespaces", storage.ListOptions{
		ResourceVersion: "20", Recursive: true, Predicate: storage.Everything,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.watch.Stop)
	return f
}

// wantPastExpired checks that a watch from before revision is told that it has
// expired: what was deleted before is not known.
func (f *mirrorFixture) wantPastExpired(revision uint64) {
	f.t.Helper()
	w, err := f.store.Watch(f.t.Context(), "/namespaces", storage.ListOptions{
		ResourceVersion: strconv.FormatUint(revision-1, 10), Recursive: true, Predicate: storage.Everything,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Stop()
	if event := <-w.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		f.t.Errorf("a watch from revision %d begins with %v", revision-1, event)
	}
}

// namespacesAt makes Namespaces from "name@revision".
func namespacesAt(specs ...string) []object {
	var all []object
	for _, s := range specs {
		all = append(all, namespaceAt(s))
	}
	return all
}

func namespaceAt(spec string) *corev1.Namespace {
	name, revision := spec[:1], spec[2:]
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: revision, Labels: map[string]string{"at": revision}}}
}

// want asserts the contents, the revision and the events.
func (f *mirrorFixture) want(contents []string, revision uint64, events ...string) {
	f.t.Helper()
	var list corev1.NamespaceList
	if err := f.store.GetList(context.Background(), "/namespaces", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, &list); err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, n := range list.Items {
		got = append(got, n.Name+"@"+n.ResourceVersion)
	}
	if diff := cmp.Diff(contents, got); diff != "" {
		f.t.Errorf("contents (-want +got):\n%s", diff)
	}
	if f.store.Revision() != revision {
		f.t.Errorf("the revision is %d, want %d", f.store.Revision(), revision)
	}
	for _, want := range events {
		if got := f.next(); got != want {
			f.t.Errorf("%s, want %s", got, want)
		}
	}
}

func (f *mirrorFixture) next() string {
	f.t.Helper()
	select {
	case e, ok := <-f.watch.ResultChan():
		switch o := e.Object.(type) {
		case *corev1.Namespace:
			return fmt.Sprintf("%s %s@%s", e.Type, o.Name, o.ResourceVersion)
		case *metav1.Status:
			return fmt.Sprintf("%s %d", e.Type, o.Code)
		}
		return fmt.Sprintf("%v %t", e, ok)
	case <-time.After(10 * time.Second):
		return "nothing"
	}
}

func TestMirrorKeepsUpstreamsRevisions(t *testing.T) {
	f := newMirrorFixture(t)
	f.mirror.Set(namespaceAt("a@25"))
	f.mirror.Set(namespaceAt("c@30"))
	f.mirror.Progress("40")
	f.mirror.Delete(namespaceAt("b@45"))
	f.mirror.Progress("7") // a late one
	f.want([]string{"a@25", "c@30"}, 45, "MODIFIED a@25", "ADDED c@30", "DELETED b@45")
}

func TestMirrorRelistIsTheDifference(t *testing.T) {
	tests := []struct {
		name     string
		list     []string
		revision string
		events   []string
	}{
		{"nothing changed", []string{"a@11", "b@12"}, "50", nil},
		{"changes come in the order of their revisions", []string{"b@31", "a@42", "c@35"}, "50",
			[]string{"MODIFIED b@31", "ADDED c@35", "MODIFIED a@42"}},
		{"a deletion gets the last revision if it is free", []string{"a@11"}, "50", []string{"DELETED b@50"}},
		{"a deletion gets a revision that no object has", []string{"a@50", "c@49"}, "50",
			[]string{"DELETED b@48", "ADDED c@49", "MODIFIED a@50"}},
		{"two deletions", nil, "22", []string{"DELETED ?@21", "DELETED ?@22"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newMirrorFixture(t)
			f.mirror.Replace(namespacesAt(test.list...), test.revision)
			contents := slices.Clone(test.list)
			slices.Sort(contents)
			var want uint64
			fmt.Sscan(test.revision, &want)
			f.want(contents, want)
			for _, want := range test.events {
				got := f.next()
				if len(want) == len(got) && len(want) > 8 && want[8] == '?' {
					got = got[:8] + "?" + got[9:]
				}
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
			// The same watch goes on, with nothing in between.
			f.mirror.Set(namespaceAt("d@60"))
			if got := f.next(); got != "ADDED d@60" {
				t.Errorf("then %s", got)
			}
			f.wantPastExpired(20)
		})
	}
}

func TestMirrorEndsWatchesWhenRevisionsLeaveNoRoom(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*Mirror)
		contents []string
		revision uint64
	}{
		{"list went back", func(m *Mirror) { m.Replace(namespacesAt("a@3", "c@4"), "5") }, []string{"a@3", "c@4"}, 5},
		{"list went back, same contents", func(m *Mirror) { m.Replace(namespacesAt("a@11", "b@12"), "15") }, []string{"a@11", "b@12"}, 15},
		{"object changed below what was seen", func(m *Mirror) { m.Replace(namespacesAt("a@13", "b@12"), "50") }, []string{"a@13", "b@12"}, 50},
		{"deletion without a free revision", func(m *Mirror) { m.Replace(namespacesAt("a@21"), "21") }, []string{"a@21"}, 21},
		{"event went back", func(m *Mirror) { m.Set(namespaceAt("a@5")) }, []string{"a@5", "b@12"}, 12},
		{"event repeats a revision", func(m *Mirror) { m.Set(namespaceAt("c@20")) }, []string{"a@11", "b@12", "c@20"}, 20},
		{"deletion went back", func(m *Mirror) { m.Delete(namespaceAt("b@6")) }, []string{"a@11"}, 11},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newMirrorFixture(t)
			test.change(f.mirror)
			f.want(test.contents, test.revision, "ERROR 410")
			f.wantPastExpired(test.revision)
			// It goes on from there.
			f.mirror.Set(namespaceAt("z@70"))
			if got := f.store.Revision(); got != 70 {
				t.Errorf("then revision %d", got)
			}
		})
	}
}

func TestMirrorIgnoresAListWithoutARevision(t *testing.T) {
	f := newMirrorFixture(t)
	f.mirror.Replace(nil, "soon")
	f.want([]string{"a@11", "b@12"}, 20)
}
