// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"errors"
	"testing"
	"time"
)

func TestRevisionsNeverRepeat(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	micros := uint64(now.UnixMicro())
	tests := []struct {
		name  string
		floor uint64
		now   time.Time
		want  uint64
	}{
		{"first start", 0, now, micros},
		{"floor behind the clock", micros - 10, now, micros},
		{"floor at the clock", micros, now, micros + 1},
		{"clock went back a year", micros, now.AddDate(-1, 0, 0), micros + 1},
		{"clock before 1970", micros, time.Unix(-1000, 0), micros + 1},
		{"no floor and a clock before 1970", 0, time.Unix(-1000, 0), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := &memoryFloor{floor: test.floor}
			r := NewRevisions(t.Context(), store, test.now)
			if r.Start() != test.want {
				t.Errorf("starts at %d, want %d", r.Start(), test.want)
			}
			if store.floor <= r.Start() {
				t.Errorf("the floor %d does not cover the start %d", store.floor, r.Start())
			}
			for _, upTo := range []uint64{r.Start() + 1, store.floor - 1, store.floor, store.floor + 1, store.floor + 10*revisionBlock} {
				r.Reserve(upTo)
				if store.floor <= upTo {
					t.Errorf("the floor %d does not cover %d", store.floor, upTo)
				}
			}
			// A process that starts after this one ended at its last revision.
			next := NewRevisions(t.Context(), store, test.now.Add(-time.Hour))
			if next.Start() <= r.Start()+10*revisionBlock {
				t.Errorf("the next process starts at %d, below what was handed out", next.Start())
			}
		})
	}
}

func TestRevisionsAreReservedInBlocks(t *testing.T) {
	store := &countingFloor{}
	r := NewRevisions(t.Context(), store, time.Now())
	for i := range uint64(revisionBlock) {
		r.Reserve(r.Start() + i)
	}
	if store.writes != 1 {
		t.Errorf("%d writes for a block of revisions, want one", store.writes)
	}
}

func TestBrokenFloorDoesNotKeepFromServing(t *testing.T) {
	now := time.Now()
	r := NewRevisions(t.Context(), brokenFloor{}, now)
	if r.Start() != uint64(now.UnixMicro()) {
		t.Errorf("starts at %d, want the wall clock", r.Start())
	}
	r.Reserve(r.Start() + 2*revisionBlock)
}

func TestReservationThatFailedIsRepeatedSoon(t *testing.T) {
	store := &countingFloor{}
	r := NewRevisions(t.Context(), store, time.Now())
	store.err, store.writes = errors.New("no space left"), 0
	next := store.floor
	r.Reserve(next)
	store.err = nil
	for i := range uint64(2 * retryBlock) {
		r.Reserve(next + i)
	}
	if store.writes != 2 || store.floor <= next+2*retryBlock {
		t.Errorf("%d writes, the floor is %d after %d was handed out", store.writes, store.floor, next+2*retryBlock)
	}
}

// countingFloor counts its writes.
type countingFloor struct {
	memoryFloor
	writes int
	err    error // of all writes
}

func (c *countingFloor) SetRevisionFloor(floor uint64) error {
	c.writes++
	if c.err != nil {
		return c.err
	}
	return c.memoryFloor.SetRevisionFloor(floor)
}

// brokenFloor can be neither read nor written.
type brokenFloor struct{}

func (brokenFloor) RevisionFloor() (uint64, error) { return 0, errors.New("broken") }

func (brokenFloor) SetRevisionFloor(uint64) error { return errors.New("broken") }
