// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/btree"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
)

// log is the state that the Stores of one resource share: the versions of its objects and their revisions. It knows keys
// and entries, and nothing of what the value of an entry means.
type log struct {
	groupResource  schema.GroupResource
	resourcePrefix string
	historyLimit   int
	historyAge     time.Duration
	clock          clock.WithTicker

	// stopping is closed by Stop; running counts the background work and the watches.
	stopping chan struct{}
	running  sync.WaitGroup
	// earlier tells the background work that a key now expires before what it sleeps for. Capacity 1, never blocks.
	earlier chan struct{}
	// awaited is set by watches that are about to sleep on changed, and cleared by the writer who replaces changed.
	awaited atomic.Bool

	// mu guards everything below.
	mu       sync.RWMutex
	stopped  bool
	current  *tree
	expiring *btree.BTreeG[*entry] // the entries of current that expire, by time
	// clone is a clone of current that readers share; nil after a change, made again by the next reader.
	clone    *tree
	history  history
	revision uint64
	// floor is the oldest revision from which the window still knows everything: watches and LISTs below it are expired.
	floor uint64
	// compacted is what CompactRevision returns: floor, but 0 as long as nothing was forgotten.
	compacted uint64
	// epoch counts the Resets. A watch that began in another epoch is expired.
	epoch uint64
	// ambiguous is the largest revision that there was before a Reset. Up to it a revision may have been given twice, and
	// does not tell the versions of a key apart.
	ambiguous uint64
	// progress counts the requests for bookmarks.
	progress uint64
	// changed is closed when there is something new for the watches.
	changed chan struct{}
}

// newLog starts the background work.
func newLog(cfg Config) *log {
	l := &log{
		groupResource:  cfg.GroupResource,
		resourcePrefix: cfg.ResourcePrefix,
		historyLimit:   cfg.HistoryLimit,
		historyAge:     cfg.HistoryAge,
		clock:          cfg.Clock,
		stopping:       make(chan struct{}),
		earlier:        make(chan struct{}, 1),
		current:        newTree(),
		expiring:       newExpiryTree(),
		revision:       max(cfg.InitialRevision, 1),
		changed:        make(chan struct{}),
	}
	if l.historyAge == 0 {
		l.historyAge = defaultHistoryAge
	}
	if l.clock == nil {
		l.clock = clock.RealClock{}
	}
	l.floor = l.revision
	l.running.Add(1)
	go l.maintain()
	return l
}

// Stop ends the background work and all watches, those of other Stores over the same log included, and waits for them.
// Later watches and writes fail; reads go on. It may be called more than once.
func (l *log) Stop() {
	l.mu.Lock()
	if !l.stopped {
		l.stopped = true
		close(l.stopping)
	}
	l.mu.Unlock()
	l.running.Wait()
}

var errStopped = errors.New("the store was stopped")

// Revision returns the revision of the last change, or the one that Advance or Reset set since.
func (l *log) Revision() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.revision
}

// GetCurrentResourceVersion implements storage.Interface; it is Revision, so the resource's own.
func (l *log) GetCurrentResourceVersion(context.Context) (uint64, error) { return l.Revision(), nil }

// ReadinessCheck implements storage.Interface: a store is ready until it is stopped. Whether what it holds is complete is
// known to its writer.
func (l *log) ReadinessCheck() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.stopped {
		return storage.ErrStorageNotReady
	}
	return nil
}

// lookup returns the present entry of key, nil if there is none, and the revision of the store.
func (l *log) lookup(key string) (*entry, uint64) {
	pivot := entry{key: key}
	l.mu.RLock()
	defer l.mu.RUnlock()
	found, _ := l.current.Get(&pivot)
	return found, l.revision
}

func (l *log) prepareKey(key string, recursive bool) (string, error) {
	return storage.PrepareKey(l.resourcePrefix, key, recursive)
}
