// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// upstreamBackoff is the pause between attempts to list and watch. The default
// of the reflector grows to a minute; a node that comes back after an outage
// should be current sooner, and the jitter spreads the nodes of a cluster.
func upstreamBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 16, Cap: 8 * time.Second}
}

// stoppableClock is the real clock, except that waiting ends with ctx: the
// reflector does not look at its context in all of its pauses.
type stoppableClock struct {
	clock.RealClock
	ctx context.Context
}

// After implements clock.Clock.
func (c stoppableClock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	timer := time.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case now := <-timer.C:
			ch <- now
		case <-c.ctx.Done():
			ch <- time.Now()
		}
	}()
	return ch
}

// receiver takes what a reflector delivers, typed. progress may be nil.
type receiver[T runtime.Object] struct {
	set      func(T)
	remove   func(T)
	replace  func(all []T, resourceVersion string)
	progress func(resourceVersion string)
}

// reflectorStore makes a receiver a store of a client-go reflector.
type reflectorStore[T runtime.Object] struct{ receiver[T] }

var (
	_ cache.ReflectorStore         = reflectorStore[*metav1.PartialObjectMetadata]{}
	_ cache.ReflectorBookmarkStore = reflectorStore[*metav1.PartialObjectMetadata]{}
)

func (s reflectorStore[T]) typed(obj any, f func(T)) error {
	typed, ok := obj.(T)
	if !ok {
		return fmt.Errorf("unexpected type %T", obj)
	}
	f(typed)
	return nil
}

// Add implements cache.ReflectorStore.
func (s reflectorStore[T]) Add(obj any) error { return s.typed(obj, s.set) }

// Update implements cache.ReflectorStore.
func (s reflectorStore[T]) Update(obj any) error { return s.typed(obj, s.set) }

// Delete implements cache.ReflectorStore.
func (s reflectorStore[T]) Delete(obj any) error { return s.typed(obj, s.remove) }

// Replace implements cache.ReflectorStore.
func (s reflectorStore[T]) Replace(list []any, resourceVersion string) error {
	all := make([]T, 0, len(list))
	for _, obj := range list {
		if err := s.typed(obj, func(t T) { all = append(all, t) }); err != nil {
			return err
		}
	}
	s.replace(all, resourceVersion)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s reflectorStore[T]) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore.
func (s reflectorStore[T]) Bookmark(resourceVersion string) error {
	if s.progress != nil {
		s.progress(resourceVersion)
	}
	return nil
}

// lister is the part of a client of one resource that a reflector needs.
type lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// absentRetry is how often upstream is asked whether it has come to have a
// resource that it lacked. It gets it by an upgrade.
const absentRetry = 3 * time.Minute

// source is one list-and-watch of upstream, with its health.
type source struct {
	resource string
	// optional: an upstream may lack the resource. Any other 404 comes from
	// something that is in front of upstream, and is an error like others.
	optional bool

	mu      sync.Mutex
	err     error
	arrived bool
	absent  bool
	failing bool // was reported
}

// Err returns the error of the last attempt; nil after one that succeeded.
func (s *source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Absent reports whether upstream said that it does not have the resource, and
// never had it as far as this process knows.
func (s *source) Absent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.absent && !s.arrived
}

// arrive notes that a list came.
func (s *source) arrive(logger klog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived, s.err = true, nil
	s.reportLocked(logger, nil)
}

// observe notes how an attempt ended, and reports whether the resource is absent.
func (s *source) observe(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if s.optional && !s.arrived && apierrors.IsNotFound(err) {
		s.absent = true
		return true
	}
	if err != nil {
		upstreamErrors.WithLabelValues(s.resource).Inc()
	}
	s.reportLocked(klog.FromContext(ctx), err)
	return false
}

// reportLocked logs once that the resource cannot be read, and once that it can
// again: the reflector would log each attempt, or none at all where upstream
// refuses the connection.
func (s *source) reportLocked(logger klog.Logger, err error) {
	switch {
	case err != nil && !s.failing && !apierrors.IsResourceExpired(err):
		s.failing = true
		logger.Info("Cannot read from upstream, trying again", "resource", s.resource, "err", err)
	case err == nil && s.failing:
		s.failing = false
		logger.Info("Reading from upstream again", "resource", s.resource)
	}
}

// follow lists and watches until ctx ends; the zero selector selects everything.
func follow[L, T runtime.Object](ctx context.Context, s *source, client lister[L], selector metav1.ListOptions, example T, r receiver[T]) {
	restrict := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector, options.FieldSelector = selector.LabelSelector, selector.FieldSelector
		return options
	}
	logger := klog.FromContext(ctx) // not that of the reflector, see below
	waiting := stoppableClock{ctx: ctx}
	// refused: upstream refused a connection since the last list. It belongs to
	// this watch, not to the source, which watches of several domains share. All
	// of it is used by the goroutine of the reflector alone.
	refused := false
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, restrict(options))
			if s.observe(klog.NewContext(ctx, logger), err) {
				// The reflector would ask, and log, every few seconds.
				<-waiting.After(wait.Jitter(absentRetry, 1))
			}
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := func() (watch.Interface, error) {
				if err := checkResume(options, refused, func(limited metav1.ListOptions) (runtime.Object, error) {
					return client.List(ctx, restrict(limited))
				}); err != nil {
					return nil, err
				}
				return client.Watch(ctx, restrict(options))
			}()
			refused = refused || utilnet.IsConnectionRefused(err)
			// A WatchList of an upstream that does not answer looks like one
			// without events. Only what arrives shows that it works. After most
			// failures, of an upstream without WatchList for one, the reflector
			// lists at once.
			if options.SendInitialEvents == nil || utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
				s.observe(klog.NewContext(ctx, logger), err)
			}
			return w, err
		},
	}, client)
	replace := r.replace
	r.replace = func(all []T, resourceVersion string) {
		refused = false
		s.arrive(logger)
		replace(all, resourceVersion)
	}
	reflector := cache.NewReflectorWithOptions(lw, example, reflectorStore[T]{r}, cache.ReflectorOptions{
		Name: "upstream " + s.resource, Backoff: upstreamBackoff(), Clock: waiting,
	})
	if !logger.V(2).Enabled() {
		// It would log each attempt.
		ctx = klog.NewContext(ctx, klog.New(nil))
	}
	reflector.RunWithContext(ctx)
}

// checkResume returns an error of an expired resourceVersion, after which the
// reflector lists anew, if a watch cannot go on from where it was because
// upstream's etcd may have been restored from a backup. The API server would
// answer a watch from a revision that it has not come to with silence until it
// has, and then go on as if nothing had been before. One that has passed the
// revision meanwhile would not even be silent; but it was down for that, and
// refused connections. After every other failure the reflector lists by itself.
func checkResume(options metav1.ListOptions, refused bool, list func(metav1.ListOptions) (runtime.Object, error)) error {
	from, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil || from == 0 || options.SendInitialEvents != nil {
		return nil //nolint:nilerr // it does not go on from a revision
	}
	first, err := list(metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	accessor, err := meta.ListAccessor(first)
	if err != nil {
		return err
	}
	if current, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64); err == nil && current < from {
		return apierrors.NewResourceExpired(fmt.Sprintf("upstream is at revision %d, before %d", current, from))
	}
	if refused {
		return apierrors.NewResourceExpired("upstream was down and may have been restored")
	}
	return nil
}
