// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

func TestMain(m *testing.M) {
	EnableWatchProgress()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit),
		// A read of the stock cacher at a resourceVersion leaves a timer of 3 s behind, also when it did not wait.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
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

type newStoreFunc = func(t testing.TB, change ...func(*Config)) *Store

// modes are the two forms of the log.
var modes = []struct {
	name     string
	newStore newStoreFunc
}{
	{"object", newTestStore},
	{"codec", newCodecStore},
}

// forEachMode runs a test on stores of either form.
func forEachMode(t *testing.T, run func(t *testing.T, newStore newStoreFunc)) {
	t.Helper()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) { run(t, mode.newStore) })
	}
}

// newCodecStore returns a store that encodes, and whose transformer adds a prefix.
func newCodecStore(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	return newTestStore(t, append([]func(*Config){withCodec}, change...)...)
}

const storedPrefix = "stored!"

func withCodec(cfg *Config) {
	cfg.Codec = podCodec()
	cfg.Transformer = storagetesting.NewPrefixTransformer([]byte(storedPrefix), false)
}

// checkStored checks what is stored, as the test of etcd's storage does: the object, which in object mode has its
// resourceVersion and in codec mode has none.
func checkStored(store *Store) storagetesting.KeyValidation {
	return func(_ context.Context, t *testing.T, key string) {
		found, _ := store.lookup(key)
		if found == nil {
			t.Fatalf("nothing is stored under %q", key)
		}
		pod, want := &example.Pod{}, ""
		if store.codec == nil {
			pod, want = found.object.(*example.Pod), fmt.Sprint(found.revision)
		} else if err := runtime.DecodeInto(podCodec(), bytes.TrimPrefix(found.data, []byte(storedPrefix)), pod); err != nil {
			t.Fatalf("stored bytes: %v", err)
		}
		if pod.ResourceVersion != want {
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

var podCodec = sync.OnceValue(func() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
})

func increaseRevision(store *Store) storagetesting.IncreaseRVFunc {
	return func(context.Context, *testing.T) int64 {
		next := store.Revision() + 1
		store.Advance(next)
		return int64(next)
	}
}

// pod returns a pod whose content is version.
func pod(namespace, name, version string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"version": version}}}
}
