// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// stepQueue is a work queue for one goroutine: Get never waits, and what is rate limited waits until retry is called.
type stepQueue struct {
	due, later []cache.ObjectName
}

var _ workqueue.TypedRateLimitingInterface[cache.ObjectName] = (*stepQueue)(nil)

func (q *stepQueue) Add(key cache.ObjectName) {
	if !slices.Contains(q.due, key) {
		q.due = append(q.due, key)
	}
}

func (q *stepQueue) Get() (cache.ObjectName, bool) {
	if len(q.due) == 0 {
		return cache.ObjectName{}, true
	}
	key := q.due[0]
	q.due = q.due[1:]
	return key, false
}

func (q *stepQueue) AddRateLimited(key cache.ObjectName) {
	if !slices.Contains(q.later, key) {
		q.later = append(q.later, key)
	}
}

func (q *stepQueue) retry() {
	for _, key := range q.later {
		q.Add(key)
	}
	q.later = nil
}

func (q *stepQueue) NumRequeues(key cache.ObjectName) int {
	if slices.Contains(q.later, key) {
		return 1
	}
	return 0
}

func (q *stepQueue) AddAfter(key cache.ObjectName, _ time.Duration) { q.AddRateLimited(key) }
func (q *stepQueue) Len() int                                       { return len(q.due) }
func (q *stepQueue) Done(cache.ObjectName)                          {}
func (q *stepQueue) Forget(cache.ObjectName)                        {}
func (q *stepQueue) ShutDown()                                      {}
func (q *stepQueue) ShutDownWithDrain()                             {}
func (q *stepQueue) ShuttingDown() bool                             { return false }
