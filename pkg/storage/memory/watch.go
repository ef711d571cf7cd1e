// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// tooLargeRetry is after how many seconds a client that is ahead of the store should come back; the stock cacher says so.
const tooLargeRetry = 1

// Watch implements storage.Interface.
//
//   - resourceVersion R > 0: the changes after R. R below the window: an ERROR event, 410 Expired.
//   - none or "0": the present objects as ADDED events, then the changes; with SendInitialEvents=false only the changes
//     from now on.
//   - SendInitialEvents=true: the present objects as ADDED events in the order of their keys, then, if the predicate
//     allows bookmarks, one that ends them, then the changes.
//   - ProgressNotify: bookmarks, periodically and after RequestWatchProgress.
//
// R above the store's revision is an error in all cases ("too large resource version"); a silent wait for it would lose
// what happens under smaller revisions. In object mode events carry the objects of the log: do not write to them. The watch
// ends with ctx, with its Stop and with that of the store.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	preparedKey, err := s.prepareKey(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	revision, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		store:     s,
		key:       preparedKey,
		recursive: opts.Recursive,
		filter:    opts.Predicate,
		acceptAll: opts.Predicate.Empty(),
		progress:  opts.ProgressNotify,
		stamp:     opts.RecordTimestamps,
		result:    make(chan watch.Event, resultBuffer),
	}
	wantInitial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	w.endInitial = wantInitial && opts.Predicate.AllowWatchBookmarks
	wantInitial = wantInitial || (opts.SendInitialEvents == nil && revision == 0)
	w.ctx, w.cancel = context.WithCancel(ctx)
	if err := s.start(w, revision, wantInitial); err != nil {
		w.cancel()
		return nil, err
	}
	return w, nil
}

// start places the cursor of w and starts it, in one step with respect to writes.
func (l *log) start(w *watcher, revision uint64, wantInitial bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return fmt.Errorf("watching %s: %w", l.groupResource, errStopped)
	}
	if revision > l.revision {
		return storage.NewTooLargeResourceVersionError(revision, l.revision, tooLargeRetry)
	}
	w.epoch = l.epoch
	w.seenProgress = l.progress
	switch {
	case wantInitial:
		state := l.latestLocked()
		w.initial = &state
		w.cursor = l.history.next
	case revision == 0:
		w.cursor = l.history.next
	case revision < l.floor:
		w.expired = true
	default:
		w.cursor = l.history.after(revision)
	}
	l.running.Add(1)
	go w.run()
	return nil
}

// reading is what a watch finds at its cursor.
type reading struct {
	changes  []record
	expired  bool
	revision uint64          // with no changes: everything up to here was delivered
	progress uint64          // with no changes: the requests for bookmarks until now
	changed  <-chan struct{} // with no changes: closed when there is something new
}

// read returns what follows the cursor.
func (l *log) read(cursor, epoch uint64) reading {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if epoch != l.epoch || cursor < l.history.first {
		return reading{expired: true}
	}
	if changes := l.history.read(cursor); len(changes) > 0 {
		return reading{changes: changes}
	}
	// Under the read lock no writer can take the channel between the look at the log and this.
	l.awaited.Store(true)
	return reading{revision: l.revision, progress: l.progress, changed: l.changed}
}
