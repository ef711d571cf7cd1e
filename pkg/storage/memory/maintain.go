// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/utils/clock"
)

const (
	// progressInterval is how often watches that asked for it get a bookmark. Nothing waits for these: a consistent LIST
	// of the stock cacher asks by RequestWatchProgress. They keep the resume point of an idle watch inside the window.
	progressInterval = 10 * time.Second
	// ageChecks is how many times per HistoryAge the old changes are dropped: none lives longer than 1.1 times the age.
	ageChecks = 10
)

// maintain is the background work of a store, on one goroutine: forgetting by age, expiring keys, periodic bookmarks.
func (s *Store) maintain() {
	defer s.running.Done()
	progress := s.clock.NewTicker(progressInterval)
	defer progress.Stop()
	age := s.clock.NewTicker(max(s.historyAge/ageChecks, time.Millisecond))
	defer age.Stop()
	for {
		var expired <-chan time.Time
		var timer clock.Timer
		if next, ok := s.nextExpiry(); ok {
			now := s.clock.Now()
			if next <= now.UnixNano() {
				s.expire(now)
				continue
			}
			timer = s.clock.NewTimer(time.Duration(next - now.UnixNano()))
			expired = timer.C()
		}
		select {
		case <-s.stopping:
		case <-s.earlier:
		case <-expired: // the next round looks
		case <-age.C():
			s.compactToAge(s.clock.Now())
		case <-progress.C():
			s.requestProgress()
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-s.stopping:
			return
		default:
		}
	}
}
