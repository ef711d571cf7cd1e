// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"
)

var ageChanges = flag.Int("age", 4_000, "number of changes that the tests of memory make")

const (
	ageObjects = 100
	ageWindow  = 500
)

// heap returns the bytes in use, after what is unused is gone.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalised
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// kept is how many things a store holds on to.
type kept struct{ objects, expiring, changes, slots int }

func keptBy(s *Store) kept {
	changes, slots := s.retained()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return kept{objects: s.current.Len(), expiring: s.expiring.Len(), changes: changes, slots: slots}
}

// TestMemoryDoesNotGrowWithAge makes many changes in a store with few objects, in several ways. What is kept, and the
// heap, must be the same after all of them as after a part.
func TestMemoryDoesNotGrowWithAge(t *testing.T) {
	for _, test := range []struct {
		name   string
		window bool // the limit of the window is given
		// change makes one change, its number is i.
		change func(ctx context.Context, a *aged, i int) error
		want   kept // the most of each but slots
	}{
		{"rewriting", true, func(ctx context.Context, a *aged, i int) error {
			return a.update(ctx, i%ageObjects, i, 0)
		}, kept{ageObjects, 0, ageWindow, 0}},
		{"applying batches", true, func(_ context.Context, a *aged, i int) error {
			name := fmt.Sprintf("p%d", i%ageObjects)
			_, err := a.Apply(Change{Key: "/pods/ns/" + name}, Change{Key: "/pods/ns/" + name, Object: a.object(name, i)})
			return err
		}, kept{ageObjects, 0, ageWindow, 0}},
		{"ever new names", true, func(ctx context.Context, a *aged, i int) error {
			key, out := fmt.Sprintf("/pods/ns/new%d", i), &example.Pod{}
			if err := a.Create(ctx, key, a.object(fmt.Sprintf("new%d", i), i), nil, 0); err != nil {
				return err
			}
			return a.Delete(ctx, key, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		}, kept{0, 0, ageWindow, 0}},
		{"keys that expire", true, func(ctx context.Context, a *aged, i int) error {
			if i%10 == 0 { // ten keys are created in a second, and live for three
				a.clock.Step(time.Second)
			}
			return a.Create(ctx, fmt.Sprintf("/pods/ns/short%d", i), a.object(fmt.Sprintf("short%d", i), i), nil, 3)
		}, kept{40, 40, ageWindow, 0}},
		{"renewing keys that expire", true, func(ctx context.Context, a *aged, i int) error {
			return a.update(ctx, i%ageObjects, i, 1_000)
		}, kept{ageObjects, ageObjects, ageWindow, 0}},
		{"the window moved by age alone", false, func(ctx context.Context, a *aged, i int) error {
			if i%100 == 0 {
				a.clock.Step(time.Second)
			}
			return a.update(ctx, i%ageObjects, i, 0)
		}, kept{ageObjects, 0, 100 * (10 + 3), 0}},
		{"compacting", false, func(ctx context.Context, a *aged, i int) error {
			if i%100 == 0 {
				a.Compact(a.Revision())
			}
			return a.update(ctx, i%ageObjects, i, 0)
		}, kept{ageObjects, 0, 101, 0}},
		{"watches that come and go, and lists of the past", true, func(ctx context.Context, a *aged, i int) error {
			if err := a.update(ctx, i%ageObjects, i, 0); err != nil || i%50 != 0 {
				return err
			}
			list := &example.PodList{}
			past := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersionMatch: "Exact", ResourceVersion: fmt.Sprint(a.Revision() - min(uint64(i/2), ageWindow/2))}
			if err := a.GetList(ctx, "/pods/", past, list); err != nil {
				return err
			}
			past.ResourceVersionMatch = ""
			w, err := a.Watch(ctx, "/pods/", past)
			if err != nil {
				return err
			}
			if i > 0 {
				<-w.ResultChan()
			}
			w.Stop()
			return nil
		}, kept{ageObjects, 0, ageWindow, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
				clock := testingclock.NewFakeClock(time.Now())
				a := &aged{clock: clock, Store: newStore(t, func(cfg *Config) {
					cfg.Clock, cfg.HistoryAge = clock, 10*time.Second
					if test.window {
						cfg.HistoryLimit = ageWindow
					}
				})}
				eventually(t, "the background work starts", clock.HasWaiters)
				run := func(from, to int) {
					for i := from; i < to; i++ {
						if err := test.change(t.Context(), a, i); err != nil {
							t.Fatal(err)
						}
					}
				}
				check := func(when string) {
					t.Helper()
					var got kept
					eventually(t, when, func() bool { // the background work deletes and forgets a little later
						got = keptBy(a.Store)
						if got.expiring > test.want.expiring {
							clock.Step(time.Second) // it may have set its timer after the last step, for a time before it
						}
						return got.objects <= test.want.objects && got.expiring <= test.want.expiring && got.changes <= test.want.changes
					})
					if got.slots >= got.changes+2*chunkSize {
						t.Errorf("%s: %d slots for %d changes", when, got.slots, got.changes)
					}
				}
				part := min(*ageChanges/4, 5_000)
				run(0, part)
				check("after a part")
				before := heap()
				run(part, *ageChanges)
				check("after all")
				// That is a fraction of what the changes of the second part are made of.
				if after := heap(); after > before+1<<19 {
					t.Errorf("the heap grew from %d to %d bytes by %d changes", before, after, *ageChanges-part)
				}
			})
		})
	}
}

type aged struct {
	*Store
	clock *testingclock.FakeClock
}

func (a *aged) object(name string, i int) *example.Pod { return pod("ns", name, fmt.Sprint(i)) }

func (a *aged) update(ctx context.Context, name, i int, ttl uint64) error {
	object := a.object(fmt.Sprintf("p%d", name), i)
	return a.GuaranteedUpdate(ctx, "/pods/ns/"+object.Name, &example.Pod{}, true, nil, updateTo(object, &ttl), nil)
}
