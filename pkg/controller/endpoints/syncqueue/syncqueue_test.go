// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package syncqueue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// run runs a queue in a bubble and returns what ends it.
func run(t *testing.T, q *Queue, workers int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { q.Run(ctx, workers) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestFailuresAreRepeatedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var works atomic.Bool
		q := New("test", func(context.Context, string) error {
			calls.Add(1)
			if !works.Load() {
				return errors.New("not yet")
			}
			return nil
		})
		defer run(t, q, 1)()
		q.Add("ns/a")
		pass(time.Second)
		if got := calls.Load(); got < 7 {
			t.Errorf("%d calls in the first second", got)
		}
		pass(24 * time.Hour)
		calls.Store(0)
		pass(time.Hour)
		if got := calls.Load(); got < 59 || got > 61 {
			t.Errorf("%d calls in an hour of the next day", got)
		}
		works.Store(true)
		pass(2 * time.Minute)
		calls.Store(0)
		pass(time.Hour)
		if got := calls.Load(); got != 0 {
			t.Errorf("%d calls after a success", got)
		}
		works.Store(false)
		q.Add("ns/a")
		pass(time.Second)
		if got := calls.Load(); got < 7 {
			t.Errorf("%d calls in the first second after a success", got)
		}
	})
}

func TestKeyIsNeverHandledTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		running, calls := map[string]int{}, map[string]int{}
		q := New("test", func(_ context.Context, key string) error {
			lock.Lock()
			running[key]++
			calls[key]++
			if running[key] > 1 {
				t.Errorf("two calls for %s", key)
			}
			lock.Unlock()
			<-time.After(time.Second)
			lock.Lock()
			running[key]--
			lock.Unlock()
			return nil
		})
		defer run(t, q, 4)()
		for range 10 {
			q.Add("ns/a")
			q.Add("ns/b")
			pass(100 * time.Millisecond)
		}
		pass(time.Minute)
		lock.Lock()
		defer lock.Unlock()
		if calls["ns/a"] != 2 || calls["ns/b"] != 2 {
			t.Errorf("calls %v, want two each: what comes during a call is one more", calls)
		}
	})
}

func TestRunEndsWithoutHandlingWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		q := New("test", func(ctx context.Context, _ string) error {
			calls.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		stop := run(t, q, 1)
		for _, key := range []string{"ns/a", "ns/b", "ns/c"} {
			q.Add(key)
		}
		synctest.Wait()
		stop()
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls", got)
		}
	})
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPatience()
		for range 2 {
			if p.Lost("a") {
				t.Error("lost at once")
			}
			pass(patienceLimit)
			if p.Lost("a") || p.Lost("b") {
				t.Error("lost too soon")
			}
			pass(time.Second)
			if !p.Lost("a") || p.Lost("b") {
				t.Error("not lost in time, or with that of another key")
			}
			p.Regain("a")
			p.Regain("b")
		}
	})
}
