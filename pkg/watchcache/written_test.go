// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func writtenService(revision, color string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "s", UID: types.UID("u1"), ResourceVersion: revision, Labels: map[string]string{"color": color},
	}}
}

// publishedFixture is a view that is complete, and has nothing.
func publishedFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, nil)
	f.setNode(ownNode, map[string]string{"zone1": "a"})
	f.view.ReplaceServices(nil)
	f.view.ReplaceEndpointSlices(nil)
	f.view.SetKubernetesAnnotations(nil)
	f.deliver()
	return f
}

func TestViewRevisionWaitsForTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := publishedFixture(t)
		type answer struct {
			revision string
			ok       bool
			took     time.Duration
		}
		ask := func(gr schema.GroupResource, revision string) <-chan answer {
			answers := make(chan answer, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				found, ok := f.view.ViewRevision(ctx, gr, "default", "s", revision)
				answers <- answer{found, ok, time.Since(start)}
			}()
			synctest.Wait()
			return answers
		}
		shown := func() string { return f.view.services[named("s")].view.ResourceVersion }

		created := ask(Services, "10")
		if len(created) != 0 {
			t.Fatal("the answer came before the event")
		}
		f.view.SetService(writtenService("10", "red"))
		if got := <-created; !got.ok || got.revision != shown() {
			t.Errorf("created: %+v, want %s", got, shown())
		}
		first := shown()
		changed := ask(Services, "12")
		f.view.SetService(writtenService("11", "blue"))
		second := shown()
		f.view.SetService(writtenService("12", "blue")) // the same to the view
		if got := <-changed; !got.ok || got.revision != second || shown() != second {
			t.Errorf("changed: %+v, want %s", got, second)
		}
		if got := <-ask(Services, "10"); got.revision != first || got.took != 0 {
			t.Errorf("overtaken: %+v, want %s", got, first)
		}
		if got := <-ask(Services, "9"); got.ok || got.took != 0 {
			t.Errorf("before it was known: %+v", got)
		}
		deleted := ask(Services, "13")
		f.view.DeleteService(named("s"), "13")
		if got := <-deleted; !got.ok || got.revision <= second {
			t.Errorf("deleted: %+v, want one after %s", got, second)
		}
		if got := <-ask(Services, "14"); got.ok || got.took != time.Minute {
			t.Errorf("what never comes: %+v", got)
		}
		if got := <-ask(Endpoints, "14"); got.ok || got.took != 0 {
			t.Errorf("what nobody follows: %+v", got)
		}
		if got := <-ask(Services, "soon"); got.ok || got.took != 0 {
			t.Errorf("no number: %+v", got)
		}
	})
}

func TestAwaitLooksAtEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := publishedFixture(t)
		done := make(chan bool, 1)
		await := func(until func(Upstream) bool) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				done <- f.view.Await(ctx, Services, "default", "s", until)
			}()
			synctest.Wait()
		}
		await(func(known Upstream) bool { return known.Exists && known.UID == "u1" })
		f.view.SetService(writtenService("10", "red"))
		if !<-done {
			t.Error("it is there")
		}
		await(func(known Upstream) bool { return known.Revision != "10" })
		f.view.SetService(writtenService("11", "red"))
		if !<-done {
			t.Error("it has changed upstream")
		}
		await(func(known Upstream) bool { return known.Deleting })
		leaving := writtenService("12", "red")
		leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		f.view.SetService(leaving)
		if !<-done {
			t.Error("it is being deleted")
		}
		await(func(known Upstream) bool { return !known.Exists })
		f.view.DeleteService(named("s"), "")
		if !<-done {
			t.Error("it is gone")
		}
		await(func(known Upstream) bool { return known.Exists })
		if <-done {
			t.Error("it has not come back")
		}
		if !f.view.Await(t.Context(), Endpoints, "default", "s", func(Upstream) bool { return false }) {
			t.Error("nobody follows Endpoints")
		}
	})
}

func TestMirrorIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := storeKind{"namespaces", func() runtime.Object { return &corev1.Namespace{} }, func() runtime.Object { return &corev1.NamespaceList{} }}.newStore(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Stop()
		m := NewMirror(t.Context(), "namespaces", store)
		done := make(chan bool, 1)
		await := func(revision string) {
			go func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("over"))
				defer cancel()
				done <- m.AwaitRevision(ctx, revision)
			}()
			synctest.Wait()
		}
		await("5")
		if !<-done {
			t.Error("before the first list there is nothing to wait for")
		}
		m.Replace(nil, "4")
		await("5")
		m.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "5"}})
		if !<-done {
			t.Error("the event has come")
		}
		known := func(until func(Upstream) bool) bool { return m.Await(t.Context(), "a", until) }
		if !known(func(u Upstream) bool { return u.Exists && u.Revision == "5" }) || !m.Await(t.Context(), "b", func(u Upstream) bool { return !u.Exists }) {
			t.Error("what is known already")
		}
		await("7")
		m.Replace(nil, "8")
		if !<-done {
			t.Error("a list has come")
		}
		await("9")
		if <-done {
			t.Error("nothing has come")
		}
		if m.AwaitRevision(t.Context(), "soon") {
			t.Error("no number")
		}
	})
}

// A copy without another manager's ownership must not be written over it.
func TestWholeWritesSeeWhatIsNotCompared(t *testing.T) {
	f := publishedFixture(t)
	f.view.SetService(writtenService("10", "red"))
	before := f.view.services[named("s")].view.ResourceVersion
	owned := writtenService("11", "red")
	owned.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", Operation: metav1.ManagedFieldsOperationApply}}
	f.view.SetService(owned)
	if shown := f.view.services[named("s")].view.ResourceVersion; shown != before {
		t.Fatalf("the view has changed from %s to %s", before, shown)
	}
	if got, ok := f.view.UpstreamRevision(Services, "default", "s", before, Carries{}); !ok || got != "11" {
		t.Errorf("for a part: %q, %t", got, ok)
	}
	if got, ok := f.view.UpstreamRevision(Services, "default", "s", before, Carries{Metadata: true}); ok {
		t.Errorf("for the whole: %q", got)
	}
	for revision, upstream := range map[string]string{"9": "", before: "10"} { // of somebody else, of another time
		if got := f.view.Refresh(Services, "default", "s", revision, upstream); got != revision {
			t.Errorf("%s at %s: now %s", revision, upstream, got)
		}
	}
	if shown := f.listServices()[0]; shown.ResourceVersion != before {
		t.Fatalf("shown anew: %+v", shown.ObjectMeta)
	}
	fresh := f.view.Refresh(Services, "default", "s", before, "11")
	shown := f.listServices()[0]
	if shown.ResourceVersion != fresh {
		t.Errorf("shown at %s, want %s", shown.ResourceVersion, fresh)
	}
	f.view.Refresh(Services, "default", "s", fresh, "") // nothing to do any more
	if again := f.listServices()[0]; again.ResourceVersion != shown.ResourceVersion {
		t.Errorf("shown once more: %+v", again.ObjectMeta)
	}
	if shown.ResourceVersion <= before || len(shown.ManagedFields) != 1 {
		t.Fatalf("not shown anew: %+v", shown.ObjectMeta)
	}
	if got, ok := f.view.UpstreamRevision(Services, "default", "s", shown.ResourceVersion, Carries{Endpoints: true, Metadata: true}); !ok || got != "11" {
		t.Errorf("shown anew: %q, %t", got, ok)
	}
}

func TestWholeWritesOfWhatDiffersStandForNothing(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", `["zone1"]`))
	f.deliver()
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n3"))
	revision := f.listSlices()[0].ResourceVersion
	stands := func(revision string, of Carries, want bool) {
		t.Helper()
		if got, ok := f.view.UpstreamRevision(EndpointSlices, "default", "s-1", revision, of); ok != want {
			t.Errorf("%+v: %q, %t", of, got, ok)
		}
	}
	stands(revision, Carries{}, true)
	stands(revision, Carries{Metadata: true}, true)
	stands(revision, Carries{Endpoints: true}, false)

	owned := newSlice("s-1", "s", "n1", "n3")
	owned.ResourceVersion = "99"
	owned.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", Operation: metav1.ManagedFieldsOperationApply}}
	f.view.SetEndpointSlice(owned)
	stands(revision, Carries{Metadata: true}, false)
	f.view.Refresh(EndpointSlices, "default", "s-1", revision, "")
	shown := f.listSlices()[0]
	if len(shown.ManagedFields) != 1 || len(shown.Endpoints) != 1 {
		t.Errorf("shown anew: %+v", shown)
	}
	stands(shown.ResourceVersion, Carries{Metadata: true}, true)
}

// An answer must not get a revision of the view that has another content.
func TestAnswersThatAreOvertakenKeepTheirRevision(t *testing.T) {
	owned := func(revision, manager string) *corev1.Service {
		s := writtenService(revision, "red")
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}}
		return s
	}
	f := publishedFixture(t)
	f.view.SetService(owned("10", "a"))
	f.view.SetService(owned("11", "b"))
	f.view.SetService(owned("12", "c"))
	if got, ok := f.view.ViewRevision(t.Context(), Services, "default", "s", "11"); ok {
		t.Errorf("overtaken: %s", got)
	}
	f.view.Refresh(Services, "default", "s", "", "")
	if shown := f.listServices()[0]; shown.ManagedFields[0].Manager != "c" {
		t.Errorf("shown: %+v", shown.ManagedFields)
	}

	d := standard(t)
	d.view.SetService(newService("s", `["zone1"]`))
	d.deliver()
	filtered := newSlice("s-1", "s", "n1", "n3")
	d.view.SetEndpointSlice(filtered)
	filtered = filtered.DeepCopy()
	filtered.ResourceVersion, filtered.ManagedFields = "98", owned("1", "a").ManagedFields
	d.view.SetEndpointSlice(filtered)
	d.view.Refresh(EndpointSlices, "default", "s-1", "", "")
	filtered = filtered.DeepCopy()
	filtered.ResourceVersion = "99"
	d.view.SetEndpointSlice(filtered)
	if got, ok := d.view.ViewRevision(t.Context(), EndpointSlices, "default", "s-1", "98"); ok {
		t.Errorf("an answer with all endpoints gets %s", got)
	}
}
