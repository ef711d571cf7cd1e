// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// historyLimitLocked is how many changes the window may hold. By default it follows the number of objects, so memory
// stays bounded by what is stored, and a batch that rewrites everything fits.
func (l *log) historyLimitLocked() int {
	if l.historyLimit > 0 {
		return l.historyLimit
	}
	return max(defaultHistoryLimit, l.current.Len())
}

// compactToLimitLocked runs after each change, so it moves the window by one change as a rule. After many deletions the
// limit can have shrunk; the window then follows in one move of the index.
func (l *log) compactToLimitLocked() {
	if surplus := l.history.len() - l.historyLimitLocked(); surplus > 0 {
		l.forgetLocked(l.history.first + uint64(surplus))
	}
}

// compactToAge forgets the changes that are older than the limit.
func (l *log) compactToAge(now time.Time) {
	oldest := now.Add(-l.historyAge)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked(l.history.search(func(r *record) bool { return r.at.After(oldest) }))
}

// Compact forgets the changes up to revision, which is lowered to the store's if it is larger: watches and LISTs from
// below it are then expired. It is for tests and for writers who know that nobody needs the past.
func (l *log) Compact(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	revision = min(revision, l.revision)
	if revision <= l.floor {
		return
	}
	l.forgetLocked(l.history.after(revision))
	l.floor, l.compacted = revision, revision
}

// forgetLocked moves the start of the window to position. Watches whose cursor lies before it find out when they read on.
func (l *log) forgetLocked(position uint64) {
	if position <= l.history.first {
		return
	}
	l.floor = max(l.floor, l.history.at(position-1).entry.revision)
	l.compacted = l.floor
	l.history.forget(position)
}

// CompactRevision implements storage.Interface. It returns 0 until something was forgotten.
func (l *log) CompactRevision() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return int64(l.compacted)
}
