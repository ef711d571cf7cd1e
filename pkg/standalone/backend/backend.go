// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// Options say how a Backend stores.
type Options struct {
	// Codec returns the codec of each resource. Required.
	Codec CodecFunc
	// Uncached are resources without a watch cache. Theirs are read and watched
	// from the log: for what is written often and hardly ever watched, events.
	Uncached []schema.GroupResource
	// Clock drives times to live, and gives the first revisions. nil: the real
	// clock.
	Clock clock.WithTicker
}

// Backend holds what a standalone server stores. It is safe for concurrent use.
type Backend struct {
	generic.RESTOptionsGetter // for the resources of Options.Codec

	uncached []schema.GroupResource
	clock    clock.WithTicker

	mu      sync.Mutex
	stopped bool
	logs    map[logKey]*sharedLog
	// views are the storages in use.
	views map[*view]struct{}
	// highest is the largest revision of the logs that were dropped.
	highest uint64
}

// New returns an empty Backend. The caller must Stop it.
//
// It enables watch progress for this process (memory.EnableWatchProgress),
// since a cache made before that would refuse WatchList for good.
func New(opts Options) *Backend {
	memory.EnableWatchProgress()
	b := &Backend{
		uncached: slices.Clone(opts.Uncached),
		clock:    opts.Clock,
		logs:     map[logKey]*sharedLog{},
		views:    map[*view]struct{}{},
	}
	if b.clock == nil {
		b.clock = clock.RealClock{}
	}
	b.RESTOptionsGetter = b.Getter(opts.Codec)
	return b
}

// Getter returns a getter for resources with other codecs, over the same logs.
func (b *Backend) Getter(codec CodecFunc) generic.RESTOptionsGetter {
	return &getter{backend: b, codec: codec}
}

// CustomResources returns the getter for the custom resources of an
// apiextensions server. They come and go, so ReadinessCheck ignores them. Their
// logs are their own: a definition may have the name of a resource of another
// getter, and the objects of that must neither be in its lists nor go with it.
func (b *Backend) CustomResources() generic.RESTOptionsGetter {
	return &getter{backend: b, codec: customResourceCodec, custom: true}
}

var errStopped = errors.New("the backend was stopped")

// ReadinessCheck returns an error that names every watch cache in use that is
// not filled yet, and nil when all of them work.
func (b *Backend) ReadinessCheck() error {
	b.mu.Lock()
	stopped := b.stopped
	b.mu.Unlock()
	if stopped {
		return errStopped
	}
	var errs []error
	for _, v := range b.used() {
		if v.log.custom {
			continue
		}
		if err := v.ready(); err != nil {
			errs = append(errs, fmt.Errorf("watch cache of %s: %w", v.log.resource, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// WaitReady returns when ReadinessCheck would return nil, or with what it returns
// when ctx ends.
func (b *Backend) WaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, fillPoll, true, func(context.Context) (bool, error) {
		last = b.ReadinessCheck()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// Stop stops all storages and logs, and waits for them. It may be called more
// than once, and after the storages were destroyed. What is built later fails.
func (b *Backend) Stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	for _, v := range b.used() {
		v.destroy()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.logs {
		l.store.Stop()
	}
}

func (b *Backend) used() []*view {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*view, 0, len(b.views))
	for v := range b.views {
		out = append(out, v)
	}
	return out
}

// getter gives the resources of one codec their storages.
type getter struct {
	backend *Backend
	codec   CodecFunc
	custom  bool // see CustomResources
}

var _ generic.RESTOptionsGetter = &getter{}

// GetRESTOptions implements generic.RESTOptionsGetter. Each call returns its
// own StorageConfig, because callers change it. Nothing is stored or runs yet
// after this call; the Decorator begins.
func (g *getter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	codec, err := g.codec(resource)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("storing %s: %w", resource, err)
	}
	return newRESTOptions(resource, codec, g.decorate), nil
}
