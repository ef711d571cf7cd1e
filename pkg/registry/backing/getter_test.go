// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/nodes"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

func TestMain(m *testing.M) {
	// As the server does: the check is a full LIST every few minutes.
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.DetectCacheInconsistency): false}); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		// A read of the stock cacher at a resourceVersion leaves a timer of 3 s behind, also when it did not wait.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// newGetter returns a getter that has a store for namespaces only.
func newGetter(t *testing.T) *backing.OptionsGetter {
	t.Helper()
	getter, _ := newDeferredGetter(t, nil)
	return getter
}

// newDeferredGetter returns one whose store counts as filled when the channel,
// if it is not nil, is closed.
func newDeferredGetter(t *testing.T, filled chan struct{}) (*backing.OptionsGetter, *memory.Store) {
	t.Helper()
	store, err := memory.New(memory.Config{
		GroupResource:   corev1.Resource("namespaces"),
		ResourcePrefix:  "/namespaces",
		NewFunc:         func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:     func() runtime.Object { return &corev1.NamespaceList{} },
		InitialRevision: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	apiScheme, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codec := scheme.NewStorageCodec(scheme.NewCodecs(apiScheme))
	channels := map[schema.GroupResource]<-chan struct{}{}
	if filled != nil {
		channels[corev1.Resource("namespaces")] = filled
	}
	getter := backing.NewOptionsGetter(codec, map[schema.GroupResource]*memory.Store{corev1.Resource("namespaces"): store}, channels)
	t.Cleanup(getter.Destroy)
	return getter, store
}

func TestCacheBeginsWithTheFilledStore(t *testing.T) {
	filled := make(chan struct{})
	getter, store := newDeferredGetter(t, filled)
	rest, err := namespaces.NewREST(getter)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := rest.Get(short, "a", &metav1.GetOptions{}); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a read before the store is filled: %v", err)
	}
	if err := rest.ReadinessCheck(); err == nil {
		t.Error("ready before the store is filled")
	}
	store.Reset(2000, map[string]runtime.Object{"/namespaces/a": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1500"}}})
	close(filled)
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return rest.ReadinessCheck() == nil, nil
	}); err != nil {
		t.Fatalf("not ready: %v", rest.ReadinessCheck())
	}
	list, err := rest.List(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := list.(*corev1.NamespaceList); len(got.Items) != 1 || got.ResourceVersion != "2000" {
		t.Errorf("the first list has %d items at revision %s", len(got.Items), got.ResourceVersion)
	}
	w, err := rest.Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "1999"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if event := <-w.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch from before the store was filled begins with %v", event)
	}
}

func TestCacheOfAStoreThatIsNeverFilledCanBeDestroyed(t *testing.T) {
	getter, _ := newDeferredGetter(t, make(chan struct{}))
	if _, err := namespaces.NewREST(getter); err != nil {
		t.Fatal(err)
	}
	destroy(getter)
}

func TestOneCacheForAResource(t *testing.T) {
	getter := newGetter(t)
	first, err := namespaces.NewREST(getter)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := namespaces.NewREST(getter); err == nil {
		second.Destroy()
		t.Error("a second cache was started")
	}
	first.Destroy()
	first.Destroy()
	if second, err := namespaces.NewREST(getter); err == nil {
		second.Destroy()
		t.Error("a second cache was started after the first was destroyed")
	}
	if err := getter.ReadinessCheck(); err == nil || !strings.Contains(err.Error(), "namespaces") {
		t.Errorf("got %v after the cache was destroyed, want an error that names it", err)
	}
}

func TestResourceWithoutStore(t *testing.T) {
	getter := newGetter(t)
	if rest, err := nodes.NewREST(getter); err == nil {
		rest.Destroy()
		t.Error("storage without a store was built")
	}
}

func TestStorageConfigIsNotShared(t *testing.T) {
	getter := newGetter(t)
	first, err := getter.GetRESTOptions(corev1.Resource("namespaces"), nil)
	if err != nil {
		t.Fatal(err)
	}
	first.StorageConfig.Prefix = "changed"
	first.StorageConfig.Codec = nil
	second, err := getter.GetRESTOptions(corev1.Resource("namespaces"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.StorageConfig.Prefix == "changed" || second.StorageConfig.Codec == nil {
		t.Error("a change of one StorageConfig shows in the next")
	}
}

func TestReadinessFollowsTheCache(t *testing.T) {
	getter := newGetter(t)
	if err := getter.ReadinessCheck(); err != nil {
		t.Errorf("nothing runs, yet not ready: %v", err)
	}
	rest, err := namespaces.NewREST(getter)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return getter.ReadinessCheck() == nil, nil
	})
	if err != nil {
		t.Fatalf("not ready: %v", getter.ReadinessCheck())
	}
	if err := rest.ReadinessCheck(); err != nil {
		t.Errorf("the getter is ready, the storage is not: %v", err)
	}
}
