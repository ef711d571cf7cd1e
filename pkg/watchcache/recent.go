// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import "strconv"

// recentRevisions is how many upstream revisions of a resource are remembered. An
// answer to a write is looked up within milliseconds of the event that brought
// it; at 5,000 changes a second this is 200 ms. What is not found any more costs
// the client a relist, or a retry, and nothing else.
const recentRevisions = 1024

// recent remembers for which upstream revisions of which objects the view has
// which revisions, for objects that have changed again, or gone, since. It is
// guarded by the lock of its View.
type recent struct {
	ring [recentRevisions]recentRevision
	next int
}

type recentRevision struct {
	cause
	view uint64
}

func newRecent() *recent { return &recent{} }

// add notes that the view has come to an upstream revision with one of its own.
func (r *recent) add(from cause, view uint64) {
	if from.upstream == "" || view == 0 {
		return
	}
	r.ring[r.next] = recentRevision{from, view}
	r.next = (r.next + 1) % len(r.ring)
}

// forget is for a list of upstream: it may have come to where it was before, in
// another way.
func (r *recent) forget() { *r = recent{} }

// find returns the revision of the view that stands for an upstream revision, the
// newest one if there are more.
func (r *recent) find(of cause) (string, bool) {
	for i := range r.ring {
		if known := &r.ring[(r.next-1-i+2*len(r.ring))%len(r.ring)]; known.view != 0 && known.cause == of {
			return strconv.FormatUint(known.view, 10), true
		}
	}
	return "", false
}
