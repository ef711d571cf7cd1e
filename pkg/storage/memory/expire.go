// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"time"

	"github.com/google/btree"

	"k8s.io/klog/v2"
)

// expireBatch bounds how many keys expire under one lock.
const expireBatch = 256

func newExpiryTree() *btree.BTreeG[*entry] {
	return btree.NewG(treeDegree, func(a, b *entry) bool {
		if a.expires != b.expires {
			return a.expires < b.expires
		}
		return a.key < b.key
	})
}

// expiry turns a time to live in seconds, 0: for ever, into a time as entry has it. What lives longer than Unix
// nanoseconds count, until the year 2262, lives for ever.
func expiry(now time.Time, ttl uint64) int64 {
	from := now.UnixNano()
	if ttl == 0 || ttl > uint64(math.MaxInt64-from)/uint64(time.Second) {
		return 0
	}
	return from + int64(ttl)*int64(time.Second)
}

// expiresFirst tells the background work about e if e is what expires next.
func (s *Store) expiresFirst(e *entry) {
	if e.expires == 0 {
		return
	}
	if next, ok := s.nextExpiry(); ok && next < e.expires {
		return
	}
	select {
	case s.earlier <- struct{}{}:
	default: // it was told already, and looks when it wakes
	}
}

func (s *Store) nextExpiry() (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	next, ok := s.expiring.Min()
	if !ok {
		return 0, false
	}
	return next.expires, true
}

// expire deletes what has expired, in batches.
func (s *Store) expire(now time.Time) {
	for s.expireSome(now) {
	}
}

func (s *Store) expireSome(now time.Time) bool {
	s.mu.Lock()
	defer s.unlockAndWake()
	for range expireBatch {
		next, ok := s.expiring.Min()
		if !ok || next.expires > now.UnixNano() {
			return false
		}
		if _, err := s.removeLocked(next, s.revision+1, now); err != nil {
			// Only an object without metadata gets here, and checkObject let none in; do not come back to it.
			s.expiring.Delete(next)
			klog.Background().Error(err, "Cannot delete an expired object", "resource", s.groupResource, "key", next.key)
		}
	}
	return true
}
