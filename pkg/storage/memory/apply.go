// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/grid-apiserver/grid-apiserver/internal/mutant"
)

// Change is one step of Apply.
type Change struct {
	// Key is the full key, resource prefix included.
	Key string
	// Object is the new object; nil deletes the key. In object mode its ownership passes to the store, also if Apply fails.
	Object runtime.Object
	// Revision is given by the writer and must be larger than the store's; 0: the next one of the counter. Either way in
	// object mode the store stamps it on Object. Apply writes the one that it has taken here, in the caller's slice.
	Revision uint64
}

// Apply commits the changes as one batch: readers and watches see none or all of it. Every change gets a revision of its
// own. Deleting a key that does not exist is no change and takes no revision. Apply returns the revision of the store
// after the batch; on an error (a key outside the resource prefix, an object of another type or that cannot be encoded, a
// given revision that is not larger than the one before it, a stopped store) nothing was committed.
func (s *Store) Apply(changes ...Change) (uint64, error) {
	entries := make([]*entry, len(changes))
	if err := s.makeEntries(entries, changes); err != nil {
		return s.Revision(), err
	}
	now := s.clock.Now()
	s.mu.Lock()
	if s.stopped {
		defer s.mu.Unlock()
		return s.revision, errStopped
	}
	if err := s.checkRevisionsLocked(changes); err != nil {
		defer s.mu.Unlock()
		return s.revision, err
	}
	defer s.unlockAndWake()
	for i := range changes {
		change := &changes[i]
		revision := change.Revision
		if revision == 0 {
			revision = s.revision + 1
		}
		if mutant.ReusedRevision && i > 0 {
			revision = s.revision
		}
		if entries[i] != nil {
			if err := s.putLocked(entries[i], revision, now); err != nil {
				return s.revision, fmt.Errorf("applying key %q: %w", change.Key, err)
			}
			change.Revision = revision
			continue
		}
		previous, ok := s.current.Get(&entry{key: change.Key})
		if !ok {
			continue
		}
		if _, err := s.removeLocked(previous, revision, now); err != nil {
			return s.revision, err
		}
		change.Revision = revision
	}
	return s.revision, nil
}

// makeEntries sets out to what the changes put into the log; nil for a deletion.
func (s *Store) makeEntries(out []*entry, changes []Change) error {
	for i := range changes {
		change := &changes[i]
		if err := s.checkChange(change); err != nil {
			return err
		}
		if change.Object == nil {
			continue
		}
		var err error
		if out[i], err = s.adopt(change.Key, change.Object); err != nil {
			return fmt.Errorf("applying key %q: %w", change.Key, err)
		}
	}
	return nil
}

func (s *Store) checkChange(change *Change) error {
	if _, err := s.prepareKey(change.Key, false); err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	if change.Object == nil {
		return nil
	}
	return s.checkObject(change.Key, change.Object)
}

// checkRevisionsLocked refuses given revisions that do not rise. It walks the batch as Apply will, because deletions of
// what does not exist take no number.
func (l *log) checkRevisionsLocked(changes []Change) error {
	given := false
	for i := range changes {
		given = given || changes[i].Revision != 0
	}
	if !given {
		return nil
	}
	revision := l.revision
	exists := map[string]bool{}
	for i := range changes {
		change := &changes[i]
		if change.Revision != 0 && change.Revision <= revision {
			return fmt.Errorf("applying key %q: revision %d is not larger than %d", change.Key, change.Revision, revision)
		}
		present, touched := exists[change.Key]
		if !touched {
			present = l.current.Has(&entry{key: change.Key})
		}
		if change.Object != nil || present {
			revision = max(change.Revision, revision+1)
		}
		exists[change.Key] = change.Object != nil
	}
	return nil
}

// Advance raises the revision without a change: the writer knows that nothing else happened up to it. A revision that is
// not larger is ignored. Watches are not woken: they learn of it by the next change, the next periodic bookmark or
// RequestWatchProgress, which a caller in a hurry calls next.
func (l *log) Advance(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision = max(l.revision, revision)
}

// Reset replaces everything: the objects, by key, which carry their resourceVersions (one without gets revision), and the
// revision, which may be smaller than before; it is raised to the largest resourceVersion of the objects. In object mode
// the ownership of the objects passes to the store. The history is dropped, and open watches end with 410 Expired.
// Objects that Apply would refuse are reported and left out.
//
// A client that was away and comes back with a revision of before a Reset to smaller revisions cannot be told from a
// current one, as with an etcd that was restored from a backup.
func (s *Store) Reset(revision uint64, objects map[string]runtime.Object) {
	revision = max(revision, 1)
	largest := revision
	next := newTree()
	for key, object := range objects {
		e, err := s.resetEntry(key, object, revision)
		if err != nil {
			utilruntime.HandleError(fmt.Errorf("resetting the store of %s: %w", s.groupResource, err))
			continue
		}
		next.ReplaceOrInsert(e)
		largest = max(largest, e.revision)
	}
	s.mu.Lock()
	defer s.unlockAndWake()
	s.current, s.clone, s.expiring = next, nil, newExpiryTree()
	s.history = history{}
	s.ambiguous = max(s.ambiguous, s.revision)
	s.revision, s.floor, s.compacted = largest, largest, largest
	s.epoch++
}

func (s *Store) resetEntry(key string, object runtime.Object, revision uint64) (*entry, error) {
	if err := s.checkChange(&Change{Key: key, Object: object}); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, fmt.Errorf("writing key %q: no object", key)
	}
	stamped, err := versioner.ObjectResourceVersion(object)
	if err != nil {
		return nil, fmt.Errorf("writing key %q: %w", key, err)
	}
	if stamped == 0 {
		stamped = revision
	}
	e, err := s.adopt(key, object)
	if err != nil {
		return nil, fmt.Errorf("writing key %q: %w", key, err)
	}
	return e, e.stamp(stamped)
}
