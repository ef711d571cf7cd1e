// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"k8s.io/apimachinery/pkg/util/cache"
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
	// maxReviews are under way at a time for each kind, so that a flood of made-up
	// tokens does not become a flood of connections upstream.
	maxReviews = 64
)

// errReviewUnavailable is in the chain of each error of a review that could not be
// made, for whatever reason.
var errReviewUnavailable = errors.New("review unavailable")

// IsReviewUnavailable reports whether err says that upstream could not be asked,
// as opposed to having said no.
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

// reviews asks upstream and remembers the answers. Concurrent questions that are the
// same are asked once. It may be used concurrently.
type reviews[V any] struct {
	// kind is "token" or "access", for metrics and errors.
	kind string
	// verdict gives the metric's label of an answer, and how long it holds.
	verdict func(V) (result string, ttl time.Duration)

	// secret keys the hashes that stand for questions: the memory holds no
	// tokens, and nobody can aim at a collision.
	secret  []byte
	answers *cache.LRUExpireCache
	flights singleflight.Group
	slots   chan struct{}
	failing atomic.Bool
}

func newReviews[V any](kind string, cacheSize int, verdict func(V) (string, time.Duration)) *reviews[V] {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &reviews[V]{
		kind:    kind,
		verdict: verdict,
		secret:  secret,
		answers: cache.NewLRUExpireCache(cacheSize),
		slots:   make(chan struct{}, maxReviews),
	}
}

// get returns the remembered answer to question, or that of ask. The error is one
// of IsReviewUnavailable. ask runs detached from ctx, since others may wait for it.
func (r *reviews[V]) get(ctx context.Context, question []byte, ask func(context.Context) (V, error)) (V, error) {
	mac := hmac.New(sha256.New, r.secret)
	mac.Write(question)
	key := string(mac.Sum(nil))
	if answer, ok := r.answers.Get(key); ok {
		return answer.(V), nil
	}
	var none V
	ctx, cancel := waitContext(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return none, unavailable(r.kind, err)
	}
	flight := r.flights.DoChan(key, func() (any, error) {
		// A flight may have landed between the look above and here.
		if answer, ok := r.answers.Get(key); ok {
			return answer, nil
		}
		return r.review(klog.FromContext(ctx), key, ask)
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

func (r *reviews[V]) review(logger klog.Logger, key string, ask func(context.Context) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	// client-go logs bodies at high verbosity, and these hold tokens. A logger
	// without a sink drops everything.
	ctx = klog.NewContext(ctx, klog.New(nil))

	answer, err := r.attempt(ctx, ask)
	if err != nil {
		reviewsTotal.WithLabelValues(r.kind, resultUnavailable).Inc()
		if !r.failing.Swap(true) {
			logger.Error(err, "Upstream cannot be asked for reviews; requests that need one are answered with 503", "review", r.kind)
		}
		return answer, err
	}
	if r.failing.Swap(false) {
		logger.Info("Upstream answers reviews again", "review", r.kind)
	}
	result, ttl := r.verdict(answer)
	reviewsTotal.WithLabelValues(r.kind, result).Inc()
	r.answers.Add(key, answer, ttl)
	return answer, nil
}

// attempt asks up to two times within ctx.
func (r *reviews[V]) attempt(ctx context.Context, ask func(context.Context) (V, error)) (V, error) {
	var none V
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return none, fmt.Errorf("too many reviews under way: %w", ctx.Err())
	}
	answer, err := ask(ctx)
	if err == nil {
		return answer, nil
	}
	select {
	case <-time.After(reviewRetryDelay):
	case <-ctx.Done():
		return none, err
	}
	return ask(ctx)
}
