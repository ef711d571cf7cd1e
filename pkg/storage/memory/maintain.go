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
func (l *log) maintain() {
	defer l.running.Done()
	progress := l.clock.NewTicker(progressInterval)
	defer progress.Stop()
	age := l.clock.NewTicker(max(l.historyAge/ageChecks, time.Millisecond))
	defer age.Stop()
	for {
		var expired <-chan time.Time
		var timer clock.Timer
		if next, ok := l.nextExpiry(); ok {
			now := l.clock.Now()
			if next <= now.UnixNano() {
				l.expire(now)
				continue
			}
			timer = l.clock.NewTimer(time.Duration(next - now.UnixNano()))
			expired = timer.C()
		}
		select {
		case <-l.stopping:
		case <-l.earlier:
		case <-expired: // the next round looks
		case <-age.C():
			l.compactToAge(l.clock.Now())
		case <-progress.C():
			l.requestProgress()
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-l.stopping:
			return
		default:
		}
	}
}
