// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// TestDrainedWatchEndsWithItsContext has nobody who reads the watch, or who stops it.
func TestDrainedWatchEndsWithItsContext(t *testing.T) {
	store, err := memory.New(memory.Config{
		GroupResource:  corev1.Resource("namespaces"),
		ResourcePrefix: "/namespaces",
		NewFunc:        func() runtime.Object { return &corev1.Namespace{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	if _, err := store.Apply(memory.Change{Key: "/namespaces/a", Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}); err != nil {
		t.Fatal(err)
	}
	drained := newDrainedStore(store)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := drained.Watch(ctx, "/namespaces", storage.ListOptions{Recursive: true, Predicate: storage.Everything}); err != nil {
		t.Fatal(err)
	}
	cancel()
	done := make(chan struct{})
	go func() {
		drained.drain()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the watch goes on")
	}
}
