// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// TestCacherFillsWithoutList checks that the cacher initialises by WatchList alone, and answers LISTs from itself.
func TestCacherFillsWithoutList(t *testing.T) {
	store := newTestStore(t)
	if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err != nil {
		t.Fatal(err)
	}
	s := newCachedStore(t, store)
	if err := s.ReadinessCheck(); err != nil {
		t.Fatalf("the cacher is not ready: %v", err)
	}
	for _, resourceVersion := range []string{"", "0", fmt.Sprint(store.Revision())} {
		list := &example.PodList{}
		opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: resourceVersion}
		if err := s.GetList(t.Context(), "/pods/", opts, list); err != nil {
			t.Fatalf("LIST at %q: %v", resourceVersion, err)
		}
		if len(list.Items) != 1 {
			t.Errorf("LIST at %q: got %d items, want 1", resourceVersion, len(list.Items))
		}
	}
	if lists := s.counted.lists.Load(); lists != 0 {
		t.Errorf("%d LISTs reached the store, want none", lists)
	}
}

// TestCacherFollowsReset checks that the cacher recovers from a Reset to smaller revisions without a restart.
func TestCacherFollowsReset(t *testing.T) {
	store := newTestStore(t, func(cfg *Config) { cfg.InitialRevision = 5_000 })
	if _, err := store.Apply(Change{Key: "/pods/ns/old", Object: pod("ns", "old", "1")}); err != nil {
		t.Fatal(err)
	}
	s := newCachedStore(t, store)
	kept := pod("ns", "new", "1")
	kept.ResourceVersion = "40"
	store.Reset(50, map[string]runtime.Object{"/pods/ns/new": kept})
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, wait.ForeverTestTimeout, true, func(ctx context.Context) (bool, error) {
		list := &example.PodList{}
		if err := s.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "0"}, list); err != nil {
			return false, nil
		}
		return len(list.Items) == 1 && list.Items[0].Name == "new" && list.ResourceVersion == "50", nil
	})
	if err != nil {
		t.Fatalf("the cacher does not show the state after the Reset: %v", err)
	}
}

type cachedStore struct {
	*cacher.CacheDelegator
	below    *Store
	counted  *countingStore
	recorder *storagetesting.KubernetesRecorder
}

func newCachedStore(t testing.TB, below *Store, options ...func(*cacher.Config)) *cachedStore {
	t.Helper()
	counted := newCountingStore(below)
	cfg := cacher.Config{
		Storage:             counted,
		Versioner:           versioner,
		GroupResource:       below.groupResource,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration,
		ResourcePrefix:      below.resourcePrefix,
		KeyFunc:             func(obj runtime.Object) (string, error) { return storage.NamespaceKeyFunc("/pods/", obj) },
		GetAttrsFunc:        podAttrs,
		NewFunc:             newPod,
		NewListFunc:         newPodList,
		Indexers:            &cache.Indexers{},
		Codec:               podCodec(),
		Clock:               clock.RealClock{},
	}
	for _, option := range options {
		option(&cfg)
	}
	stock, err := cacher.NewCacherFromConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stock.Stop)
	if err := stock.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	delegator := cacher.NewCacheDelegator(stock, counted)
	t.Cleanup(delegator.Stop)
	t.Cleanup(func() {
		// A cacher that is stopped while its queue is full hangs: it is stopped when it has caught up, or cannot.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = delegator.GetList(ctx, below.resourcePrefix, storage.ListOptions{Recursive: true, Predicate: storage.Everything}, newPodList())
	})
	return &cachedStore{CacheDelegator: delegator, below: below, counted: counted, recorder: counted.recorder}
}

// compact compacts the store and waits until the cacher has dropped its snapshots too.
func (s *cachedStore) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	compactTo(s.below)(ctx, t, resourceVersion)
	if !utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot) {
		return
	}
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, wait.ForeverTestTimeout, true, func(context.Context) (bool, error) {
		return s.CompactRevision() == s.below.CompactRevision(), nil
	})
	if err != nil {
		t.Fatalf("the cacher did not compact: %v", err)
	}
}

func withIndexes(cfg *cacher.Config) {
	cfg.IndexerFuncs = map[string]storage.IndexerFunc{
		"spec.nodeName": func(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName },
	}
	cfg.Indexers = &cache.Indexers{
		"f:spec.nodeName":      func(obj any) ([]string, error) { return []string{obj.(*example.Pod).Spec.NodeName}, nil },
		"f:metadata.namespace": func(obj any) ([]string, error) { return []string{obj.(*example.Pod).Namespace}, nil },
	}
}

// withClusterScope makes keys without a namespace.
func withClusterScope(cfg *cacher.Config) {
	withIndexes(cfg)
	cfg.KeyFunc = func(obj runtime.Object) (string, error) { return storage.NoNamespaceKeyFunc("/pods/", obj) }
}

// withFastCompaction shortens the 15 seconds after which the cacher looks at CompactRevision.
func withFastCompaction(cfg *cacher.Config) { cfg.Clock = fastTimers{} }

type fastTimers struct{ clock.RealClock }

func (c fastTimers) NewTimer(d time.Duration) clock.Timer {
	return fastTimer{c.RealClock.NewTimer(shortened(d))}
}

type fastTimer struct{ clock.Timer }

func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(shortened(d)) }

func shortened(d time.Duration) time.Duration {
	if d == 15*time.Second {
		return 10 * time.Millisecond
	}
	return d
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("not a pod: %T", obj)
	}
	return pod.Labels, fields.Set{
		"metadata.name":      pod.Name,
		"metadata.namespace": pod.Namespace,
		"spec.nodeName":      pod.Spec.NodeName,
		"spec.restartPolicy": string(pod.Spec.RestartPolicy),
		"status.phase":       string(pod.Status.Phase),
	}, nil
}

// syncedCreate returns from Create when the cache has the object.
type syncedCreate struct{ *cachedStore }

func (s *syncedCreate) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.cachedStore.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, wait.ForeverTestTimeout, true, func(ctx context.Context) (bool, error) {
		cached := &example.Pod{}
		err := s.Get(ctx, key, storage.GetOptions{ResourceVersion: "0"}, cached)
		if storage.IsNotFound(err) {
			return false, nil
		}
		return apiequality.Semantic.DeepEqual(cached, out), err
	})
}

// slowWrites writes at the pace of an etcd. The cacher ends a watch whose ten slots are full when an event comes, unless it
// has spare time, and it has none right after its start; a burst of writes to memory outruns the goroutine that empties
// the slots.
type slowWrites struct{ *cachedStore }

func (s *slowWrites) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, suggestion runtime.Object) error {
	<-time.After(20 * time.Millisecond)
	return s.cachedStore.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, suggestion)
}
