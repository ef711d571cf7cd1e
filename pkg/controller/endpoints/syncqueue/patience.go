// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package syncqueue

import (
	"sync"
	"time"
)

// patienceLimit is how long a sync waits for its cache to show its own writes.
// A watch that lags so much is rare. An object that another client has deleted
// before the answer to its creation was here never shows, though, and whoever
// tracks it would wait for ever. To proceed is safe: a write that is based on an
// old object is refused, and what is created twice is removed once seen.
const patienceLimit = 30 * time.Second

// Patience measures for how long a cache has been stale for each key. Its
// methods may be called concurrently.
type Patience struct {
	lock  sync.Mutex
	since map[string]time.Time // by key
}

// NewPatience returns one for keys whose caches are not stale.
func NewPatience() *Patience {
	return &Patience{since: map[string]time.Time{}}
}

// Lost notes that the cache is stale, and says whether it has been for so long
// that the caller should go on with what it has.
func (p *Patience) Lost(key string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	since, waiting := p.since[key]
	if !waiting {
		p.since[key] = time.Now()
		return false
	}
	return time.Since(since) > patienceLimit
}

// Regain notes that the cache is not stale, or that nobody waits any more.
func (p *Patience) Regain(key string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.since, key)
}
