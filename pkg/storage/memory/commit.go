// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// putLocked commits object under key at revision, which must be larger than s.revision, and returns the new entry. The
// store owns object from here on; only its resourceVersion is written, and only if it is another.
func (s *Store) putLocked(key string, object runtime.Object, revision uint64, expires int64, now time.Time) (*entry, error) {
	if stamped, err := versioner.ObjectResourceVersion(object); err != nil || stamped != revision {
		if err := versioner.UpdateObject(object, revision); err != nil {
			return nil, err
		}
	}
	e := &entry{key: key, revision: revision, expires: expires, object: object}
	previous, _ := s.current.ReplaceOrInsert(e)
	s.appendLocked(record{entry: e, previous: previous, at: now})
	return e, nil
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
