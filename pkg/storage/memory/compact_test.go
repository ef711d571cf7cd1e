// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// patience is for what takes milliseconds on a machine that does nothing else.
const patience = 2 * time.Minute

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (s *Store) retained() (changes, slots int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, chunk := range s.history.chunks {
		slots += len(chunk)
	}
	return s.history.len(), slots
}

func TestHistoryIsBoundedByCount(t *testing.T) {
	for _, test := range []struct {
		name           string
		limit, objects int
		want           int
	}{
		{"given", 100, 300, 100},
		{"default", 0, 10, defaultHistoryLimit},
		{"default follows the number of objects", 0, defaultHistoryLimit + 500, defaultHistoryLimit + 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newTestStore(t, func(cfg *Config) { cfg.HistoryLimit = test.limit })
			for i := range max(2*test.want, 2*test.objects) {
				name := fmt.Sprintf("p%d", i%test.objects)
				if _, err := store.Apply(Change{Key: "/pods/ns/" + name, Object: pod("ns", name, "1")}); err != nil {
					t.Fatal(err)
				}
			}
			changes, slots := store.retained()
			if changes != test.want || slots >= test.want+2*chunkSize {
				t.Errorf("%d changes in %d slots, want %d changes", changes, slots, test.want)
			}
			if got, want := store.CompactRevision(), int64(store.Revision())-int64(test.want); got != want {
				t.Errorf("compact revision %d, want %d", got, want)
			}
		})
	}
}

func TestHistoryIsBoundedByAge(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	store := newTestStore(t, func(cfg *Config) { cfg.Clock, cfg.HistoryAge = clock, time.Minute })
	eventually(t, "the background work starts", clock.HasWaiters)
	if got := store.CompactRevision(); got != 0 {
		t.Errorf("compact revision %d before anything was forgotten, want 0", got)
	}
	write := func() {
		if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "1")}); err != nil {
			t.Fatal(err)
		}
	}
	write() // 2
	write() // 3
	clock.Step(50 * time.Second)
	write() // 4
	clock.Step(12 * time.Second)
	eventually(t, "the old changes go", func() bool { return store.CompactRevision() == 3 })
	if changes, _ := store.retained(); changes != 1 {
		t.Errorf("%d changes kept, want 1", changes)
	}
}

func TestKeysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(t)
		create := func(name string, ttl uint64) {
			if err := store.Create(t.Context(), "/pods/ns/"+name, pod("ns", name, "1"), nil, ttl); err != nil {
				t.Fatal(err)
			}
		}
		update := func(name string, ttl *uint64) {
			if err := store.GuaranteedUpdate(t.Context(), "/pods/ns/"+name, &example.Pod{}, false, nil, updateTo(pod("ns", name, "2"), ttl), nil); err != nil {
				t.Fatal(err)
			}
		}
		create("long", 60)    // 2
		create("short", 10)   // 3
		create("ever", 0)     // 4
		create("renewed", 10) // 5
		update("renewed", ptr.To[uint64](100))
		create("kept", 10)  // 7
		update("kept", nil) // 8
		w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "8"})
		begin := time.Now()
		for _, want := range []struct {
			event string
			after time.Duration
		}{
			{"DELETED short@9=1", 10 * time.Second},
			{"DELETED long@10=1", 60 * time.Second},
			{"DELETED renewed@11=2", 100 * time.Second},
		} {
			if got := describe(<-w.ResultChan()); got != want.event || time.Since(begin) != want.after {
				t.Errorf("got %s after %v, want %s after %v", got, time.Since(begin), want.event, want.after)
			}
		}
		if diff := cmp.Diff([]string{"ever@4=1", "kept@8=2"}, contents(t, store)); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
		store.Stop()
	})
}

func TestStatsEstimatesSize(t *testing.T) {
	store := newTestStore(t)
	check := func(count int64, sized bool) {
		t.Helper()
		stats, err := store.Stats(t.Context())
		if err != nil || stats.ObjectCount != count || (stats.EstimatedAverageObjectSizeBytes > 0) != sized {
			t.Errorf("stats %+v, error %v; want count %d, a size: %v", stats, err, count, sized)
		}
	}
	check(0, false)
	for i := range 200 {
		if err := store.Create(t.Context(), fmt.Sprintf("/pods/ns/p%d", i), pod("ns", fmt.Sprintf("p%d", i), "1"), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	check(200, false)
	keys := func(context.Context) ([]string, error) { return nil, nil }
	if err := store.EnableResourceSizeEstimation(nil); err == nil {
		t.Error("a nil KeysFunc was taken")
	}
	if err := store.EnableResourceSizeEstimation(keys); err != nil {
		t.Fatal(err)
	}
	if err := store.EnableResourceSizeEstimation(keys); err == nil {
		t.Error("enabled twice")
	}
	check(200, true)
}
