// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// historyLimitLocked is how many changes the window may hold. By default it follows the number of objects, so memory
// stays bounded by what is stored, and a batch that rewrites everything fits.
func (s *Store) historyLimitLocked() int {
	if s.historyLimit > 0 {
		return s.historyLimit
	}
	return max(defaultHistoryLimit, s.current.Len())
}

// compactToLimitLocked runs after each change, so it moves the window by one change as a rule. After many deletions the
// limit can have shrunk; the window then follows in one move of the index.
func (s *Store) compactToLimitLocked() {
	if surplus := s.history.len() - s.historyLimitLocked(); surplus > 0 {
		s.forgetLocked(s.history.first + uint64(surplus))
	}
}

// compactToAge forgets the changes that are older than the limit.
func (s *Store) compactToAge(now time.Time) {
	oldest := now.Add(-s.historyAge)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(s.history.search(func(r *record) bool { return r.at.After(oldest) }))
}

// Compact forgets the changes up to revision, which is lowered to the store's if it is larger: watches and LISTs from
// below it are then expired. It is for tests and for writers who know that nobody needs the past.
func (s *Store) Compact(revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision = min(revision, s.revision)
	if revision <= s.floor {
		return
	}
	s.forgetLocked(s.history.after(revision))
	s.floor, s.compacted = revision, revision
}

// forgetLocked moves the start of the window to position. Watches whose cursor lies before it find out when they read on.
func (s *Store) forgetLocked(position uint64) {
	if position <= s.history.first {
		return
	}
	s.floor = max(s.floor, s.history.at(position-1).entry.revision)
	s.compacted = s.floor
	s.history.forget(position)
}

// CompactRevision implements storage.Interface. It returns 0 until something was forgotten.
func (s *Store) CompactRevision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return int64(s.compacted)
}
