// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backing joins the REST storage of a resource to its store in
// memory: it puts the watch cache of k8s.io/apiserver over a memory.Store.
package backing

import (
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// OptionsGetter gives each resource its own watch cache over its own store.
// It is safe for concurrent use.
type OptionsGetter struct {
	codec  runtime.Codec
	stores map[schema.GroupResource]*memory.Store
	filled map[schema.GroupResource]<-chan struct{}

	mu sync.Mutex
	// caches holds an entry for every resource whose cache was started.
	caches map[schema.GroupResource]startedCache
}

var _ generic.RESTOptionsGetter = &OptionsGetter{}

type startedCache struct {
	ready   func() error
	destroy factory.DestroyFunc
}

// NewOptionsGetter returns a getter over the given stores. The ResourcePrefix
// of each store must be "/" and the plural name of its resource. The codec is
// used to check types only: objects are never encoded. filled has, for a store
// that is not filled yet, a channel that is closed when it is: its watch cache
// begins then. Without a channel it begins at once.
//
// It enables watch progress for this process (memory.EnableWatchProgress),
// since a cache made before that would refuse WatchList for good. The stores
// stay the caller's: stop them after the caches are destroyed.
func NewOptionsGetter(codec runtime.Codec, stores map[schema.GroupResource]*memory.Store, filled map[schema.GroupResource]<-chan struct{}) *OptionsGetter {
	memory.EnableWatchProgress()
	return &OptionsGetter{
		codec:  codec,
		stores: maps.Clone(stores),
		filled: maps.Clone(filled),
		caches: map[schema.GroupResource]startedCache{},
	}
}

// GetRESTOptions implements generic.RESTOptionsGetter. Each call returns its
// own StorageConfig, because callers change it. No cache runs yet after this
// call; the Decorator starts it.
func (g *OptionsGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	if _, ok := g.stores[resource]; !ok {
		return generic.RESTOptions{}, fmt.Errorf("there is no store for %s", resource)
	}
	config := storagebackend.NewDefaultConfig("", g.codec)
	return generic.RESTOptions{
		StorageConfig:  config.ForResource(resource),
		Decorator:      g.decorate,
		ResourcePrefix: "/" + resource.Resource,
	}, nil
}

// decorate is a generic.StorageDecorator. A resource has one cache: a second
// one would hold everything twice and deliver on its own schedule, so asking
// for it is an error, also after the first has been destroyed, because a store
// accepts the size estimation of one cache only.
func (g *OptionsGetter) decorate(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	keyFunc func(obj runtime.Object) (string, error),
	newFunc func() runtime.Object,
	newListFunc func() runtime.Object,
	getAttrs storage.AttrFunc,
	triggers storage.IndexerFuncs,
	indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	resource := config.GroupResource
	store, ok := g.stores[resource]
	if !ok {
		return nil, nil, fmt.Errorf("there is no store for %s", resource)
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	if _, started := g.caches[resource]; started {
		return nil, nil, fmt.Errorf("%s has a watch cache already", resource)
	}
	stopped := make(chan struct{})
	var below storage.Interface = store
	if filled, ok := g.filled[resource]; ok {
		below = &deferredStore{Store: store, filled: filled, stopped: stopped}
	}
	delegator, stop, err := StartCache(cacher.Config{
		Storage:             below,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       resource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        getAttrs,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		return nil, nil, err
	}
	var once sync.Once
	destroy := func() {
		once.Do(func() { close(stopped) })
		stop()
	}
	g.caches[resource] = startedCache{ready: delegator.ReadinessCheck, destroy: destroy}
	return delegator, destroy, nil
}

// ReadinessCheck returns an error that names every started cache which is not
// filled or was destroyed, and nil when all of them work.
func (g *OptionsGetter) ReadinessCheck() error {
	var errs []error
	for resource, c := range g.started() {
		if err := c.ready(); err != nil {
			errs = append(errs, fmt.Errorf("watch cache of %s: %w", resource, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Destroy stops all caches. It may be called more than once, and after the
// storage that was built over them has been destroyed.
func (g *OptionsGetter) Destroy() {
	for _, c := range g.started() {
		c.destroy()
	}
}

func (g *OptionsGetter) started() map[schema.GroupResource]startedCache {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.caches)
}
