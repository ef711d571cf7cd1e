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
func (s *Store) latest() snapshot {
	s.mu.RLock()
	if s.clone != nil {
		defer s.mu.RUnlock()
		return snapshot{objects: s.clone, revision: s.revision}
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latestLocked()
}

func (s *Store) latestLocked() snapshot {
	if s.clone == nil {
		s.clone = s.current.Clone()
	}
	return snapshot{objects: s.clone, revision: s.revision}
}

// at returns the state at revision, rewound only for the keys that begin with prefix. The lock is held for a clone, which
// takes constant time; undoing the changes since revision happens without it.
func (s *Store) at(revision uint64, prefix string) (snapshot, error) {
	s.mu.Lock()
	if revision > s.revision {
		defer s.mu.Unlock()
		return snapshot{}, storage.NewTooLargeResourceVersionError(revision, s.revision, 0)
	}
	if revision < s.floor {
		defer s.mu.Unlock()
		return snapshot{}, apierrors.NewResourceExpired(listExpired)
	}
	position := s.history.after(revision)
	if position == s.history.next {
		defer s.mu.Unlock()
		return snapshot{objects: s.latestLocked().objects, revision: revision}, nil
	}
	objects := s.current.Clone()
	changes := s.history.readAll(position)
	s.mu.Unlock()

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
