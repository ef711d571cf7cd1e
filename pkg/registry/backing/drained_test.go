// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// TestDestroyInTheMiddleOfABurst stops the cache while more changes are on their
// way than it has room for.
func TestDestroyInTheMiddleOfABurst(t *testing.T) {
	for range 20 { // how many of them hang without drain is up to the scheduler
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
				for open := true; open; {
					// On a busy machine the burst closes all watches before they have sent anything.
					_, open = <-w.ResultChan()
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
		select {
		case <-begun:
		case <-time.After(30 * time.Second):
			t.Fatal("no watch sees a change or its end")
		}
		destroy(getter)
	}
}

// destroy panics if Destroy hangs: a test that merely fails would end in a cleanup that waits for the same.
func destroy(getter *backing.OptionsGetter) {
	hangs := time.AfterFunc(30*time.Second, func() {
		debug.SetTraceback("all")
		panic("OptionsGetter.Destroy hangs")
	})
	defer hangs.Stop()
	getter.Destroy()
}
