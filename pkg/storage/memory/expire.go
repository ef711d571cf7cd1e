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
func (l *log) expiresFirst(e *entry) {
	if e.expires == 0 {
		return
	}
	if next, ok := l.nextExpiry(); ok && next < e.expires {
		return
	}
	select {
	case l.earlier <- struct{}{}:
	default: // it was told already, and looks when it wakes
	}
}

func (l *log) nextExpiry() (int64, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	next, ok := l.expiring.Min()
	if !ok {
		return 0, false
	}
	return next.expires, true
}

// expire deletes what has expired, in batches.
func (l *log) expire(now time.Time) {
	for l.expireSome(now) {
	}
}

func (l *log) expireSome(now time.Time) bool {
	l.mu.Lock()
	defer l.unlockAndWake()
	for range expireBatch {
		next, ok := l.expiring.Min()
		if !ok || next.expires > now.UnixNano() {
			return false
		}
		if _, err := l.removeLocked(next, l.revision+1, now); err != nil {
			// Only an object without metadata gets here, and checkObject let none in; do not come back to it.
			l.expiring.Delete(next)
			klog.Background().Error(err, "Cannot delete an expired object", "resource", l.groupResource, "key", next.key)
		}
	}
	return true
}
