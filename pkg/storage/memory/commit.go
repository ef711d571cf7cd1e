// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// putLocked commits e at revision, which must be larger than l.revision.
func (l *log) putLocked(e *entry, revision uint64, now time.Time) error {
	if err := e.stamp(revision); err != nil {
		return err
	}
	previous, _ := l.current.ReplaceOrInsert(e)
	l.appendLocked(record{entry: e, previous: previous, at: now})
	return nil
}

// removeLocked commits the deletion of previous, a present entry, at revision.
func (l *log) removeLocked(previous *entry, revision uint64, now time.Time) (*entry, error) {
	gone, err := previous.tombstone(revision)
	if err != nil {
		return nil, err
	}
	l.current.Delete(previous)
	l.appendLocked(record{entry: gone, previous: previous, at: now})
	return gone, nil
}

func (l *log) appendLocked(r record) {
	if r.previous != nil && r.previous.expires != 0 {
		l.expiring.Delete(r.previous)
	}
	if r.entry.expires != 0 {
		l.expiring.ReplaceOrInsert(r.entry)
	}
	l.clone = nil
	l.revision = r.entry.revision
	l.history.append(r)
	l.compactToLimitLocked()
}

// unlockAndWake ends a write: it releases the lock, then wakes the watches that sleep. The channel is made anew only if
// someone waits on it, so writes to a store without watches allocate nothing here.
func (l *log) unlockAndWake() {
	var wake chan struct{}
	if l.awaited.Swap(false) {
		wake = l.changed
		l.changed = make(chan struct{})
	}
	l.mu.Unlock()
	if wake != nil {
		close(wake)
	}
}
