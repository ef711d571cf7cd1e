// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"k8s.io/klog/v2"
)

const (
	// reviewBudget is what one request may wait for all of its reviews together
	// (its token, impersonation, its right). The client has its answer within
	// 2 s; the rest is for a loaded machine, where 1.8 s became 2.04 s. It is
	// enough for a new connection and a review at a round trip of 300 ms.
	reviewBudget = 1500 * time.Millisecond
	// reviewTimeout bounds one review. It may serve several requests.
	reviewTimeout = reviewBudget
	// reviewRetryDelay is before the second and last attempt. A connection that
	// broke while idle, and a credential of our own that has been replaced on
	// disk, cost one failed attempt; reviews have no side effects.
	reviewRetryDelay = 100 * time.Millisecond
)

// errReviewUnavailable is in the chain of each error of a review that could not be
// made, for whatever reason.
var errReviewUnavailable = errors.New("review unavailable")

// IsReviewUnavailable reports whether err says that upstream could not be asked, or
// was not because too many reviews are under way, as opposed to having said no.
func IsReviewUnavailable(err error) bool { return errors.Is(err, errReviewUnavailable) }

func unavailable(kind string, cause error) error {
	return fmt.Errorf("%s %w: %w", kind, errReviewUnavailable, cause)
}

type budgetKey struct{}

// withReviewBudget starts the clock of reviewBudget for a request.
func withReviewBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, time.Now().Add(reviewBudget))
}

func waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Value(budgetKey{}).(time.Time)
	if !ok {
		deadline = time.Now().Add(reviewBudget)
	}
	return context.WithDeadline(ctx, deadline)
}

// policy is what differs between the kinds of reviews.
type policy[V any] struct {
	// kind is "token" or "access", for metrics and errors.
	kind string
	// accepted reports whether an answer is a yes.
	accepted func(V) bool
	// How long a yes and a no hold, and how many of each are remembered.
	acceptedTTL, rejectedTTL time.Duration
	memorySize               int
	// share and queue are those of slots.
	share, queue int
}

// reviews asks upstream and remembers the answers. Concurrent questions that are the
// same are asked once. It may be used concurrently.
type reviews[V any] struct {
	policy[V]
	memory  *memory[V]
	flights singleflight.Group
	outage  outage
	// unproven questions may be made up. Those that were accepted before are
	// asked again beside them, in slots that no stranger can take.
	unproven, proven *slots
}

func newReviews[V any](p policy[V]) *reviews[V] {
	return &reviews[V]{
		policy:   p,
		memory:   newMemory[V](p.memorySize),
		outage:   outage{kind: p.kind},
		unproven: newSlots(p.share, p.queue),
		proven:   newSlots(p.share, p.queue),
	}
}

// get returns the remembered answer to question, or that of ask, for which the asker
// pays with its share of the slots. The error is one of IsReviewUnavailable. ask runs
// detached from ctx, since others may wait for it.
func (r *reviews[V]) get(ctx context.Context, asker string, question []byte, ask func(context.Context) (V, error)) (V, error) {
	key := r.memory.key(question)
	if answer, ok := r.memory.get(key); ok {
		return answer, nil
	}
	var none V
	ctx, cancel := waitContext(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return none, unavailable(r.kind, err)
	}
	flight := r.flights.DoChan(key, func() (any, error) {
		// A flight may have landed between the look above and here.
		if answer, ok := r.memory.get(key); ok {
			return answer, nil
		}
		return r.review(klog.FromContext(ctx), asker, key, ask)
	})
	select {
	case landed := <-flight:
		if landed.Err != nil {
			return none, unavailable(r.kind, landed.Err)
		}
		return landed.Val.(V), nil
	case <-ctx.Done():
		return none, unavailable(r.kind, ctx.Err())
	}
}

func (r *reviews[V]) review(logger klog.Logger, asker, key string, ask func(context.Context) (V, error)) (V, error) {
	slots := r.unproven
	if r.memory.isProven(key) {
		slots = r.proven
	}
	release, err := slots.acquire(asker)
	if err != nil {
		reviewsTotal.WithLabelValues(r.kind, resultBusy).Inc()
		var none V
		return none, err
	}
	defer release()

	// The time begins with the slot. What waited for it must not look like an
	// upstream that does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	// client-go logs bodies at high verbosity, and these hold tokens. A logger
	// without a sink drops everything.
	ctx = klog.NewContext(ctx, klog.New(nil))

	answer, err := attempt(ctx, ask)
	if err != nil {
		reviewsTotal.WithLabelValues(r.kind, resultUnavailable).Inc()
		r.outage.failed(logger, err)
		return answer, err
	}
	r.outage.answered(logger)
	if r.accepted(answer) {
		reviewsTotal.WithLabelValues(r.kind, resultAllowed).Inc()
		r.memory.accept(key, answer, r.acceptedTTL)
	} else {
		reviewsTotal.WithLabelValues(r.kind, resultDenied).Inc()
		r.memory.reject(key, answer, r.rejectedTTL)
	}
	return answer, nil
}

// attempt asks up to two times within ctx.
func attempt[V any](ctx context.Context, ask func(context.Context) (V, error)) (V, error) {
	answer, err := ask(ctx)
	if err == nil {
		return answer, nil
	}
	select {
	case <-time.After(reviewRetryDelay):
	case <-ctx.Done():
		return answer, err
	}
	return ask(ctx)
}
