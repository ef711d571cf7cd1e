// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync"
)

// revisions are those of one update: what it replaced, and what it made.
type revisions struct {
	replaced, made string
}

// written remembers the last write of each Endpoints object, by key, to tell a
// cache that has not seen it yet, and the event that it causes.
type written struct {
	lock   sync.Mutex
	writes map[string]revisions
}

func newWritten() *written {
	return &written{writes: map[string]revisions{}}
}

func (w *written) note(key, replaced, made string) {
	if replaced == made {
		return // the server has found nothing to change
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.writes[key] = revisions{replaced: replaced, made: made}
}

func (w *written) forget(key string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.writes, key)
}

// stale says that an object of this revision has been replaced by us.
func (w *written) stale(key, revision string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok := w.writes[key]
	return ok && last.replaced == revision
}

// own says that the revision is the one that our last write made.
func (w *written) own(key, revision string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok := w.writes[key]
	return ok && last.made == revision
}
