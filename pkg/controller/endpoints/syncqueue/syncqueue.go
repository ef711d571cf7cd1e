// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncqueue calls a function for each key it is given until the
// function succeeds, never twice at a time for one key.
package syncqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// minRetry is about as long as a watch event takes to come back after a
	// write: the most frequent failure is a cache that has not seen it yet.
	minRetry = 5 * time.Millisecond
	// maxRetry bounds how long a key waits after its cause has gone. A key is
	// never given up: what has to be written stays right.
	maxRetry = time.Minute
)

// Queue is a queue of keys, "namespace/name", and the function that handles
// them. Its methods may be called concurrently.
type Queue struct {
	keys workqueue.TypedRateLimitingInterface[string]
	sync func(ctx context.Context, key string) error
}

// New makes a queue whose metrics are labelled with name. It has goroutines of
// its own until Run ends.
func New(name string, syncKey func(ctx context.Context, key string) error) *Queue {
	return &Queue{
		keys: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: name},
		),
		sync: syncKey,
	}
}

// Add has the key handled as soon as possible.
func (q *Queue) Add(key string) {
	q.keys.Add(key)
}

// AddAfter has the key handled after the delay.
func (q *Queue) AddAfter(key string, delay time.Duration) {
	q.keys.AddAfter(key, delay)
}

// Run handles keys until ctx ends, and returns when no call is under way any
// more. It can be called once.
func (q *Queue) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for q.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	q.keys.ShutDown()
	running.Wait()
}

func (q *Queue) next(ctx context.Context) bool {
	key, stopped := q.keys.Get()
	if stopped {
		return false
	}
	defer q.keys.Done(key)
	if ctx.Err() != nil {
		return true // what is still queued after the end is not handled
	}
	start := time.Now()
	err := q.sync(ctx, key)
	logger := klog.FromContext(ctx)
	if err != nil {
		logger.V(2).Info("Sync failed, it will be tried again", "key", key, "failures", q.keys.NumRequeues(key)+1, "err", err)
		q.keys.AddRateLimited(key)
		return true
	}
	logger.V(4).Info("Synced", "key", key, "duration", time.Since(start))
	q.keys.Forget(key)
	return true
}
