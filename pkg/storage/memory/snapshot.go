// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

const listExpired = "The resourceVersion for the provided list is too old."

// snapshot is the state at one revision. It does not change, and reading it needs no lock.
type snapshot struct {
	objects  *tree
	revision uint64
}

// latest returns the present state.
func (l *log) latest() snapshot {
	l.mu.RLock()
	if l.clone != nil {
		defer l.mu.RUnlock()
		return snapshot{objects: l.clone, revision: l.revision}
	}
	l.mu.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latestLocked()
}

func (l *log) latestLocked() snapshot {
	if l.clone == nil {
		l.clone = l.current.Clone()
	}
	return snapshot{objects: l.clone, revision: l.revision}
}

// at returns the state at revision, rewound only for the keys that begin with prefix. The lock is held for a clone, which
// takes constant time; undoing the changes since revision happens without it.
func (l *log) at(revision uint64, prefix string) (snapshot, error) {
	l.mu.Lock()
	if revision > l.revision {
		defer l.mu.Unlock()
		return snapshot{}, storage.NewTooLargeResourceVersionError(revision, l.revision, 0)
	}
	if revision < l.floor {
		defer l.mu.Unlock()
		return snapshot{}, apierrors.NewResourceExpired(listExpired)
	}
	position := l.history.after(revision)
	if position == l.history.next {
		defer l.mu.Unlock()
		return snapshot{objects: l.latestLocked().objects, revision: revision}, nil
	}
	objects := l.current.Clone()
	changes := l.history.readAll(position)
	l.mu.Unlock()

	for i := len(changes) - 1; i >= 0; i-- {
		for j := len(changes[i]) - 1; j >= 0; j-- {
			change := &changes[i][j]
			switch {
			case !strings.HasPrefix(change.entry.key, prefix):
			case change.previous == nil:
				objects.Delete(change.entry)
			default:
				objects.ReplaceOrInsert(change.previous)
			}
		}
	}
	return snapshot{objects: objects, revision: revision}, nil
}
