// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"
)

func TestExpiry(t *testing.T) {
	now := time.Date(2024, time.February, 29, 12, 0, 0, 1, time.UTC)
	last := uint64(time.Unix(0, math.MaxInt64).Sub(now) / time.Second)
	for _, test := range []struct {
		name string
		ttl  uint64
		want int64
	}{
		{"for ever", 0, 0},
		{"a second", 1, now.Add(time.Second).UnixNano()},
		{"the last one that fits", last, now.Add(time.Duration(last) * time.Second).UnixNano()},
		{"one more", last + 1, 0},
		{"beyond a Duration", 1 << 40, 0},
		{"beyond a signed number", math.MaxUint64, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := expiry(now, test.ttl); got != test.want {
				t.Errorf("a time to live of %d: expires at %d, want %d", test.ttl, got, test.want)
			}
		})
	}
}

// TestHugeTimeToLive checks that a key that is to live for millennia does not expire at once.
func TestHugeTimeToLive(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	store := newTestStore(t, func(cfg *Config) { cfg.Clock = clock })
	if err := store.Create(t.Context(), "/pods/ns/old", pod("ns", "old", "1"), nil, 1<<40); err != nil {
		t.Fatal(err)
	}
	store.expire(clock.Now().Add(time.Hour))
	if err := store.Get(t.Context(), "/pods/ns/old", storage.GetOptions{}, &example.Pod{}); err != nil {
		t.Errorf("Get: %v", err)
	}
}
