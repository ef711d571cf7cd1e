// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

// broadcast wakes all who wait for a change of what a lock guards. Its methods
// are called with that lock held.
type broadcast struct{ waiting chan struct{} }

// waitLocked returns a channel that is closed at the next change.
func (b *broadcast) waitLocked() <-chan struct{} {
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *broadcast) notifyLocked() {
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
