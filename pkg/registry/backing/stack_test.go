// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
)

var versioner = storage.APIObjectVersioner{}

var randomSeed = flag.Uint64("seed", 0, "replay the random test with this seed")

const stackBatches = 60 // of each of two writers

// list reads what was written at revision. A cache that has not seen a Reset yet shows what was before it, and may lack
// the last writes of that time: to smaller revisions it looks fresh.
func (s *stack) list(ctx context.Context, revision uint64) error {
	return wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(ctx context.Context) (bool, error) {
		object, err := s.rest.List(ctx, &metainternalversion.ListOptions{})
		if apierrors.IsTooManyRequests(err) {
			return false, nil // the cache fills itself anew
		}
		if err != nil {
			return false, err
		}
		list, got := object.(*corev1.NamespaceList), state{}
		for _, item := range list.Items {
			got[item.Name] = item.Annotations["content"]
		}
		at, err := versioner.ParseResourceVersion(list.ResourceVersion)
		if err != nil {
			return false, err
		}
		e, present := s.find(at)
		written, still := s.find(revision)
		if diff := gocmp.Diff(e.at(at), got); diff != "" || still && e.start == written.start && at < revision {
			return false, fmt.Errorf("a LIST at %d after %d was written (-want +got):\n%s", at, revision, diff)
		}
		return present, nil
	})
}

// client watches, breaks off, and resumes.
type client struct {
	*stack
	last    uint64 // what it has seen; 0: it must begin anew
	have    state
	resumed int
}

// watch follows at most count events.
func (c *client) watch(ctx context.Context, count int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := &metainternalversion.ListOptions{AllowWatchBookmarks: true}
	if c.last == 0 {
		c.have, options.SendInitialEvents, options.ResourceVersionMatch = state{}, ptr.To(true), metav1.ResourceVersionMatchNotOlderThan
	} else {
		options.ResourceVersion = fmt.Sprint(c.last)
		c.resumed++
	}
	w, err := c.rest.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			if _, present := c.find(c.last); present {
				return fmt.Errorf("nothing was forgotten: %w", apierrors.FromObject(event.Object))
			}
			err := apierrors.FromObject(event.Object)
			if c.last = 0; apierrors.IsResourceExpired(err) || storage.IsTooLargeResourceVersion(err) { // the latter if revisions became smaller
				return nil
			}
			return err
		}
		if err := c.take(event); err != nil {
			return err
		}
		if count--; count <= 0 || c.last == c.end.Load() {
			return nil
		}
	}
	return nil
}

// take checks an event: it must be the next one.
func (c *client) take(event watch.Event) error {
	if shared, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = shared.GetObject()
	}
	object, ok := event.Object.(*corev1.Namespace)
	if !ok {
		return fmt.Errorf("%s with %T", event.Type, event.Object)
	}
	revision, err := versioner.ObjectResourceVersion(object)
	if err != nil {
		return err
	}
	e, _ := c.find(revision)
	got := change{event.Type, object.Name, object.Annotations["content"]}
	switch {
	case event.Type == watch.Bookmark && c.last == 0: // the end of the initial events
		if diff := gocmp.Diff(e.at(revision), c.have); diff != "" {
			return fmt.Errorf("the state at %d (-want +got):\n%s", revision, diff)
		}
	case event.Type == watch.Bookmark && revision == c.last:
	case c.last == 0:
		c.have.apply(got)
		return nil
	case revision != c.last+1 || revision <= e.start || got != e.log[revision-e.start-1]:
		return fmt.Errorf("%v at %d after %d, written was %v", got, revision, c.last, e)
	default:
		c.have.apply(got)
	}
	c.last = revision
	return nil
}

// TestClientsMissNothing has writers, a Reset to other revisions amid their changes, and clients that watch all the time,
// through everything that the server puts over a store. It compares what clients see with what was written.
func TestClientsMissNothing(t *testing.T) {
	for name, revision := range map[string]uint64{"larger revisions": 3_000_000, "smaller revisions": 2_000} {
		t.Run(name, func(t *testing.T) {
			seed := cmp.Or(*randomSeed, rand.Uint64())
			t.Logf("replay with -seed=%d", seed)
			filled := make(chan struct{})
			getter, store := newDeferredGetter(t, filled)
			rest, err := namespaces.NewREST(getter)
			if err != nil {
				t.Fatal(err)
			}
			s := &stack{store: store, rest: rest}
			s.end.Store(math.MaxUint64)
			s.reset(1_000_000)
			close(filled)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			failing := func(err error) {
				if err != nil {
					t.Error(err)
					cancel()
				}
			}
			var clients, writers sync.WaitGroup
			all := make([]*client, 6)
			for i := range all {
				c, random := &client{stack: s}, rand.New(rand.NewPCG(seed, uint64(i)))
				all[i] = c
				clients.Go(func() {
					if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(ctx context.Context) (bool, error) {
						err := c.watch(ctx, 1+random.IntN(60))
						if apierrors.IsTooManyRequests(err) {
							return false, nil // the cache fills itself anew
						}
						return c.last == s.end.Load(), err
					}); err != nil {
						failing(fmt.Errorf("client at %d: %w", c.last, err))
					}
				})
			}
			for writer := range 2 {
				random := rand.New(rand.NewPCG(seed, uint64(10+writer)))
				writers.Go(func() {
					for batch := range stackBatches {
						if writer == 0 && batch == stackBatches/2 {
							s.reset(revision)
						}
						last, err := s.write(random, 1+random.IntN(5))
						if err == nil {
							err = s.list(ctx, last)
						}
						if err != nil {
							failing(err)
							return
						}
					}
				})
			}
			writers.Wait()
			s.end.Store(store.Revision() + 1)
			_, err = s.write(rand.New(rand.NewPCG(seed, 20)), 1)
			failing(err)
			clients.Wait()
			failing(s.list(ctx, s.end.Load()))
			if t.Failed() {
				return
			}
			for _, c := range all {
				e, _ := s.find(c.last)
				if diff := gocmp.Diff(e.at(s.end.Load()), c.have); diff != "" || c.resumed < 2 {
					t.Errorf("a client resumed %d times (-LIST +client):\n%s", c.resumed, diff)
				}
			}
		})
	}
}
