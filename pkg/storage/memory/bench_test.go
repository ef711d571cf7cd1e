// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// BenchmarkApply measures one change, with watches that read as fast as they can. What it costs must not depend on how
// many objects there are.
func BenchmarkApply(b *testing.B) {
	for _, mode := range modes {
		for _, bc := range []struct{ objects, watches int }{{1_000, 0}, {5_000, 0}, {5_000, 1}, {5_000, 50}} {
			b.Run(fmt.Sprintf("%s/%d-objects/%d-watches", mode.name, bc.objects, bc.watches), func(b *testing.B) {
				store := mode.newStore(b)
				fillPods(b, store, bc.objects)
				var group sync.WaitGroup
				for range bc.watches {
					w, err := store.Watch(b.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(store.Revision())})
					if err != nil {
						b.Fatal(err)
					}
					group.Go(func() {
						for range w.ResultChan() {
						}
					})
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					object := pod("ns", fmt.Sprintf("p%05d", i%bc.objects), "2")
					if _, err := store.Apply(Change{Key: "/pods/ns/" + object.Name, Object: object}); err != nil {
						b.Fatal(err)
					}
				}
				store.Stop()
				group.Wait()
			})
		}
	}
}

// BenchmarkGetList lists 5,000 objects: the present, and the state of 1,000 changes ago.
func BenchmarkGetList(b *testing.B) {
	for _, mode := range modes {
		store := mode.newStore(b)
		fillPods(b, store, 5_000)
		past := store.Revision()
		fillPods(b, store, 1_000)
		for _, bc := range []struct {
			name string
			opts storage.ListOptions
		}{
			{"present", storage.ListOptions{Recursive: true, Predicate: storage.Everything}},
			{"past", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(past), ResourceVersionMatch: "Exact"}},
		} {
			b.Run(mode.name+"/"+bc.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					list := &example.PodList{}
					if err := store.GetList(b.Context(), "/pods/", bc.opts, list); err != nil {
						b.Fatal(err)
					}
					if len(list.Items) != 5_000 {
						b.Fatalf("%d items", len(list.Items))
					}
				}
			})
		}
	}
}

func fillPods(b *testing.B, store *Store, count int) {
	b.Helper()
	changes := make([]Change, count)
	for i := range changes {
		name := fmt.Sprintf("p%05d", i)
		changes[i] = Change{Key: "/pods/ns/" + name, Object: pod("ns", name, "1")}
	}
	if _, err := store.Apply(changes...); err != nil {
		b.Fatal(err)
	}
}
