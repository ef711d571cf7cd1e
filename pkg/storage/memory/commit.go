// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// putLocked commits e at revision, which must be larger than s.revision.
func (s *Store) putLocked(e *entry, revision uint64, now time.Time) error {
	if err := e.stamp(revision); err != nil {
		return err
	}
	previous, _ := s.current.ReplaceOrInsert(e)
	s.appendLocked(record{entry: e, previous: previous, at: now})
	return nil
}

// removeLocked commits the deletion of previous, a present entry, at revision.
func (s *Store) removeLocked(previous *entry, revision uint64, now time.Time) (*entry, error) {
	gone, err := previous.tombstone(revision)
	if err != nil {
		return nil, err
	}
	s.current.Delete(previous)
	s.appendLocked(record{entry: gone, previous: previous, at: now})
	return gone, nil
}

func (s *Store) appendLocked(r record) {
	if r.previous != nil && r.previous.expires != 0 {
		s.expiring.Delete(r.previous)
	}
	if r.entry.expires != 0 {
		s.expiring.ReplaceOrInsert(r.entry)
	}
	s.clone = nil
	s.revision = r.entry.revision
	s.history.append(r)
	s.compactToLimitLocked()
}

// unlockAndWake ends a write: it releases the lock, then wakes the watches that sleep. The channel is made anew only if
// someone waits on it, so writes to a store without watches allocate nothing here.
func (s *Store) unlockAndWake() {
	var wake chan struct{}
	if s.awaited.Swap(false) {
		wake = s.changed
		s.changed = make(chan struct{})
	}
	s.mu.Unlock()
	if wake != nil {
		close(wake)
	}
}
