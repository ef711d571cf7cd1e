// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"sync"
	"time"
)

const (
	// maxReviews are under way at a time in one pool of slots, so that a flood of
	// made-up tokens does not become a flood of connections upstream.
	maxReviews = 64
	// slotWait is how long a review waits for its slot. It leaves the client enough
	// of reviewBudget for the review itself at a round trip of 300 ms. Shorter
	// would favour a flood, whose callers come again at once.
	slotWait = time.Second
)

// errBusy is in the chain of the error of a review that found no slot. It says
// nothing about upstream.
var errBusy = errors.New("too many reviews are under way")

// slots bounds the reviews that are under way: maxReviews in all, and a share of
// them for one asker. It may be used concurrently.
type slots struct {
	all chan struct{}
	// share of the slots is the most that one asker holds, and queue the most
	// reviews of it that are under way or wait; one more is refused at once.
	share, queue int

	lock sync.Mutex
	// askers have a review that is under way or waits, the others are forgotten.
	askers map[string]*asker
}

type asker struct {
	slots   chan struct{}
	reviews int // guarded by slots.lock
}

func newSlots(share, queue int) *slots {
	return &slots{all: make(chan struct{}, maxReviews), share: share, queue: queue, askers: map[string]*asker{}}
}

// acquire waits for a slot, up to slotWait. The error is errBusy.
func (s *slots) acquire(name string) (release func(), err error) {
	a := s.enter(name)
	if a == nil {
		return nil, errBusy
	}
	timer := time.NewTimer(slotWait)
	defer timer.Stop()
	// The own share first: who waits for the slots of all is one of few.
	select {
	case a.slots <- struct{}{}:
	case <-timer.C:
		s.leave(name, a)
		return nil, errBusy
	}
	select {
	case s.all <- struct{}{}:
	case <-timer.C:
		<-a.slots
		s.leave(name, a)
		return nil, errBusy
	}
	return func() {
		<-s.all
		<-a.slots
		s.leave(name, a)
	}, nil
}

// enter returns nil if too many reviews of the asker wait.
func (s *slots) enter(name string) *asker {
	s.lock.Lock()
	defer s.lock.Unlock()
	a := s.askers[name]
	if a == nil {
		a = &asker{slots: make(chan struct{}, s.share)}
		s.askers[name] = a
	}
	if a.reviews >= s.queue {
		return nil
	}
	a.reviews++
	return a
}

func (s *slots) leave(name string, a *asker) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if a.reviews--; a.reviews == 0 {
		delete(s.askers, name)
	}
}
