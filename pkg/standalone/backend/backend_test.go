// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

func TestStoragesOfAResourceShareItsLog(t *testing.T) {
	for name, uncached := range map[string]bool{"cached": false, "uncached": true} {
		t.Run(name, func(t *testing.T) {
			opts := backend.Options{}
			if uncached {
				opts.Uncached = append(opts.Uncached, nodes)
			}
			b := newBackend(t, opts)
			first, destroyFirst := build(t, b)
			second, _ := build(t, b.Getter(codecFor(t, runtime.ContentTypeJSON)))
			if _, raw := first.(*memory.Store); raw != uncached {
				t.Fatalf("the storage is a %T", first)
			}
			w := watchFrom(t, second, list(t, second).ResourceVersion)
			made := create(t, first, "a")
			event := next(t, w)
			if diff := cmp.Diff(watch.Event{Type: watch.Added, Object: made}, event); diff != "" {
				t.Errorf("created in one, seen in the other (-want +got):\n%s", diff)
			}

			destroyFirst()
			destroyFirst()
			create(t, second, "b")
			if event := next(t, w); event.Object.(*corev1.Node).Name != "b" {
				t.Errorf("got %v after the other storage was destroyed", event)
			}
			third, _ := build(t, b)
			if got := list(t, third); len(got.Items) != 2 || got.ResourceVersion != list(t, second).ResourceVersion {
				t.Errorf("a storage built later lists %d objects at %s", len(got.Items), got.ResourceVersion)
			}
		})
	}
}

// TestCustomResourcesHaveTheirOwnLog has a definition with the name of a resource
// that the server has itself: what deletes all that was defined so must not find
// the objects of the other one.
func TestCustomResourcesHaveTheirOwnLog(t *testing.T) {
	for name, uncached := range map[string][]schema.GroupResource{"cached": nil, "uncached": {nodes}} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, backend.Options{Uncached: uncached})
			builtIn, _ := build(t, b)
			create(t, builtIn, "a")

			custom := buildCustom(t, b)
			create(t, custom, "a")
			create(t, custom, "b")
			if got := list(t, builtIn); len(got.Items) != 1 {
				t.Errorf("%d built-in objects", len(got.Items))
			}
			if got := list(t, buildCustom(t, b)); len(got.Items) != 2 {
				t.Errorf("another version has %d custom objects", len(got.Items))
			}
			remove(t, custom, "a")
			if got := list(t, builtIn); len(got.Items) != 1 || got.Items[0].Name != "a" {
				t.Errorf("after the custom object went, the built-in ones are %v", got.Items)
			}
		})
	}
}

func TestObjectsHaveNoKind(t *testing.T) {
	for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(mediaType, func(t *testing.T) {
			in, _ := build(t, newBackend(t, backend.Options{Codec: codecFor(t, mediaType)}))
			object := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			created := &corev1.Node{}
			if err := in.Create(t.Context(), "/nodes/a", object, created, 0); err != nil {
				t.Fatal(err)
			}
			for from, kind := range map[string]metav1.TypeMeta{"created": created.TypeMeta, "listed": list(t, in).Items[0].TypeMeta} {
				if kind != (metav1.TypeMeta{}) {
					t.Errorf("%s: %v", from, kind)
				}
			}
		})
	}
}

func TestStorageConfigIsNotShared(t *testing.T) {
	b := newBackend(t, backend.Options{})
	first, err := b.GetRESTOptions(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.StorageConfig.Codec, first.StorageConfig.Prefix = nil, "changed"
	second, err := b.GetRESTOptions(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.StorageConfig.Codec == nil || second.StorageConfig.Prefix == "changed" {
		t.Error("a change of one StorageConfig shows in the next")
	}
}

func TestKeyPrefixesDoNotChange(t *testing.T) {
	b := newBackend(t, backend.Options{})
	build(t, b)
	options, err := b.GetRESTOptions(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = options.Decorator(options.StorageConfig, "/other", nil,
		func() runtime.Object { return &corev1.Node{} }, func() runtime.Object { return &corev1.NodeList{} }, nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), `"/nodes"`) {
		t.Errorf("a storage under other keys: %v", err)
	}
}

func TestReadiness(t *testing.T) {
	b := newBackend(t, backend.Options{})
	if err := b.ReadinessCheck(); err != nil {
		t.Errorf("nothing runs, yet not ready: %v", err)
	}
	_, destroy := build(t, b)
	waitReady(t, b.ReadinessCheck)
	destroy()
	if err := b.ReadinessCheck(); err != nil {
		t.Errorf("a storage that was destroyed counts: %v", err)
	}
	b.Stop()
	if err := b.ReadinessCheck(); err == nil {
		t.Error("ready after Stop")
	}
}

func TestStop(t *testing.T) {
	b := newBackend(t, backend.Options{})
	in, destroy := build(t, b)
	w := watchFrom(t, in, list(t, in).ResourceVersion)
	b.Stop()
	for range w.ResultChan() { // it ends
	}
	b.Stop()
	destroy()
	if _, _, err := tryBuild(b, nodes); err == nil {
		t.Error("a storage was built after Stop")
	}
}

// TestRestartExpiresRevisions has a client that knows a revision from before.
func TestRestartExpiresRevisions(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	before, _ := build(t, newBackend(t, backend.Options{Clock: clock}))
	known := create(t, before, "a").ResourceVersion

	clock.Step(time.Second)
	after, _ := build(t, newBackend(t, backend.Options{Clock: clock}))
	create(t, after, "b")
	w, err := after.Watch(t.Context(), "/nodes/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: known})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if event := next(t, w); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %v", event)
	}
}

func TestRevisionsAreNotThoseOfViews(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	in, _ := build(t, newBackend(t, backend.Options{Clock: clock}))
	if revision := revisionOf(t, create(t, in, "a").ResourceVersion); revision >= body.MinViewRevision/100 {
		t.Errorf("in 2099 revisions begin at %d, those of views at %d", revision, uint64(body.MinViewRevision))
	}
}

func revisionOf(t *testing.T, version string) uint64 {
	t.Helper()
	revision, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func TestIdleLogs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		used    bool
		filled  bool
		idle    time.Duration
		dropped bool
	}{
		{name: "idle for long", idle: time.Hour, dropped: true},
		{name: "idle for a moment", idle: time.Second},
		{name: "with objects", idle: time.Hour, filled: true},
		{name: "in use", idle: time.Hour, used: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			b := newBackend(t, backend.Options{Clock: clock, Uncached: []schema.GroupResource{nodes}})
			in, destroy := build(t, b)
			for range 10_000 { // more than one for each millisecond that passes
				create(t, in, "a")
				remove(t, in, "a")
			}
			if tc.filled {
				create(t, in, "b")
			}
			last := revisionOf(t, list(t, in).ResourceVersion)
			if !tc.used {
				destroy()
			}
			clock.Step(tc.idle)
			_, destroyOther, err := tryBuild(b, corev1.Resource("others"))
			if err != nil {
				t.Fatal(err)
			}
			defer destroyOther()
			clock.SetTime(time.Now()) // steps back
			in, _ = build(t, b)
			got := revisionOf(t, list(t, in).ResourceVersion)
			if dropped := got != last; dropped != tc.dropped || got < last {
				t.Errorf("at revision %d after %d, dropped: %t", got, last, dropped)
			}
			if held := len(list(t, in).Items); (held > 0) != tc.filled {
				t.Errorf("%d objects", held)
			}
		})
	}
}
