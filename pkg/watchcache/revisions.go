// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// revisionBlock is how many revisions are reserved on disk at a time, with one
// write. At 5,000 changes a second, a label flip of a large site every second,
// a block would last three minutes; at usual rates it lasts for months.
const revisionBlock = 1 << 20

// retryBlock is after how many revisions a reservation that failed is tried
// again: not at every change, since the disk is in trouble.
const retryBlock = 1 << 10

// FloorStore persists the floor of the view's revisions.
type FloorStore interface {
	RevisionFloor() (uint64, error)
	SetRevisionFloor(floor uint64) error
}

// Revisions hands out the ranges from which the stores of the view count. All
// revisions that were ever handed out lie below the persisted floor, so a new
// process that starts at the floor, or at the wall clock if that is larger,
// never repeats one: not after a crash, and not when the clock was set back.
// It is safe for concurrent use.
type Revisions struct {
	logger klog.Logger
	store  FloorStore
	start  uint64

	mu       sync.Mutex
	reserved uint64
}

// NewRevisions reads the floor and reserves the first block. A floor that
// cannot be read or written is logged and the wall clock alone is relied on:
// serving goes before guarding against a clock that was set back.
func NewRevisions(ctx context.Context, store FloorStore, now time.Time) *Revisions {
	r := &Revisions{logger: klog.FromContext(ctx), store: store}
	floor, err := store.RevisionFloor()
	if err != nil {
		r.logger.Error(err, "Cannot read the floor of the view's revisions, relying on the wall clock")
	}
	r.start = max(floor+1, uint64(max(now.UnixMicro(), 0)))
	r.Reserve(r.start)
	return r
}

// Start returns the revision at which each store of the view begins.
func (r *Revisions) Start() uint64 { return r.start }

// Reserve makes sure that revisions up to and including upTo are below the
// persisted floor before they are handed out. It nearly always returns at once.
func (r *Revisions) Reserve(upTo uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if upTo < r.reserved {
		return
	}
	block := upTo + revisionBlock
	if err := r.store.SetRevisionFloor(block); err != nil {
		r.logger.Error(fmt.Errorf("reserve revisions up to %d: %w", block, err),
			"Cannot persist the floor of the view's revisions, relying on the wall clock")
		block = upTo + retryBlock
	}
	r.reserved = block
}
