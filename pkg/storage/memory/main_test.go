// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

func TestMain(m *testing.M) {
	EnableWatchProgress()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

func podConfig() Config {
	return Config{
		GroupResource:  schema.GroupResource{Resource: "pods"},
		ResourcePrefix: "/pods/",
		NewFunc:        newPod,
		NewListFunc:    newPodList,
	}
}

func newTestStore(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	cfg := podConfig()
	for _, apply := range change {
		apply(&cfg)
	}
	store, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(store.Stop)
	return store
}

// checkStored is what etcd's storage checks on the stored bytes, on the stored object.
func checkStored(store *Store) storagetesting.KeyValidation {
	return func(_ context.Context, t *testing.T, key string) {
		found, _ := store.lookup(key)
		if found == nil {
			t.Fatalf("nothing is stored under %q", key)
		}
		pod := found.shared().(*example.Pod)
		if want := fmt.Sprint(found.revision); pod.ResourceVersion != want {
			t.Errorf("stored object has resourceVersion %q, want %q", pod.ResourceVersion, want)
		}
		if pod.SelfLink != "" {
			t.Errorf("stored object has a selfLink")
		}
	}
}

func compactTo(store *Store) storagetesting.Compaction {
	return func(_ context.Context, t *testing.T, resourceVersion string) {
		revision, err := versioner.ParseResourceVersion(resourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		store.Compact(revision)
	}
}

// compactAsEtcd compacts and raises the revision by one: compacting an etcd of Kubernetes writes a key of its own.
func compactAsEtcd(store *Store) storagetesting.Compaction {
	return func(ctx context.Context, t *testing.T, resourceVersion string) {
		compactTo(store)(ctx, t, resourceVersion)
		increaseRevision(store)(ctx, t)
	}
}

func podCodec(t testing.TB) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}

func increaseRevision(store *Store) storagetesting.IncreaseRVFunc {
	return func(context.Context, *testing.T) int64 {
		next := store.Revision() + 1
		store.Advance(next)
		return int64(next)
	}
}

func countsNothing(*testing.T, uint64, uint64) {}

// withTransformerHook lets tests run that take hold of a transformer for a part of what they check. Object mode has none:
// the hook is called, and only what a stale transformer means is imitated, which is that an update writes although
// nothing changed.
type withTransformerHook struct {
	*Store
	stale bool
}

func (s *withTransformerHook) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	_, s.stale, _ = modify(storagetesting.NewPrefixTransformer(nil, false)).TransformFromStorage(context.Background(), nil, dataContext{})
	return func() { s.stale = false }
}

type dataContext struct{}

func (dataContext) AuthenticatedData() []byte { return nil }

func (s *withTransformerHook) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, suggestion runtime.Object) error {
	if found, _ := s.lookup(key); s.stale && found != nil {
		if _, err := s.Apply(Change{Key: key, Object: found.private()}); err != nil {
			return err
		}
	}
	return s.Store.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, suggestion)
}

// pod returns a pod whose content is version.
func pod(namespace, name, version string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"version": version}}}
}
