// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"k8s.io/apimachinery/pkg/types"
)

// ledger says who owns which value.
type ledger[K comparable] map[K]claim

// claim counts, because one Service can have two claims for a moment: a write
// that takes a value back can come before the release by the write that gave it
// up, since values are released after the write.
type claim struct {
	owner types.UID
	count int
}

// take returns false if another owner has the value.
func (l ledger[K]) take(key K, owner types.UID) bool {
	c, ok := l[key]
	if ok && c.owner != owner {
		return false
	}
	l[key] = claim{owner: owner, count: c.count + 1}
	return true
}

// release does nothing if the value is another owner's, or nobody's.
func (l ledger[K]) release(key K, owner types.UID) {
	switch c := l[key]; {
	case c.owner != owner:
	case c.count > 1:
		l[key] = claim{owner: owner, count: c.count - 1}
	default:
		delete(l, key)
	}
}

// free tells whether nobody has the value.
func (l ledger[K]) free(key K) bool {
	_, ok := l[key]
	return !ok
}

// available tells whether take would succeed.
func (l ledger[K]) available(key K, owner types.UID) bool {
	c, ok := l[key]
	return !ok || c.owner == owner
}
