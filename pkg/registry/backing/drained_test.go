// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// TestDestroyInTheMiddleOfABurst stops the cache while more changes are on their
// way than it has room for.
func TestDestroyInTheMiddleOfABurst(t *testing.T) {
	for range 20 { // about one in fifteen hung
		getter, store := newDeferredGetter(t, nil)
		rest, err := namespaces.NewREST(getter)
		if err != nil {
			t.Fatal(err)
		}
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return getter.ReadinessCheck() == nil, nil
		}); err != nil {
			t.Fatal(getter.ReadinessCheck())
		}
		changes := make([]memory.Change, 5_000)
		for i := range changes {
			name := fmt.Sprint("n", i)
			changes[i] = memory.Change{Key: "/namespaces/" + name, Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
		// Many watches make the cache slower than what fills it.
		begun := make(chan struct{}, 1)
		for range 200 {
			w, err := rest.Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(store.Revision())})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for range w.ResultChan() {
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			}()
		}
		if _, err := store.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		<-begun
		done := make(chan struct{})
		go func() {
			getter.Destroy()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("Destroy hangs")
		}
	}
}
