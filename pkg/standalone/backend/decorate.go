// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

func newRESTOptions(resource schema.GroupResource, codec runtime.Codec, decorate generic.StorageDecorator) generic.RESTOptions {
	prefix := "/" + resource.Resource
	if resource.Group != "" {
		prefix = "/" + resource.Group + prefix
	}
	return generic.RESTOptions{
		StorageConfig:           storagebackend.NewDefaultConfig("", codec).ForResource(resource),
		Decorator:               decorate,
		ResourcePrefix:          prefix,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
	}
}

// view is one storage over a log.
type view struct {
	log     *sharedLog
	ready   func() error
	destroy factory.DestroyFunc
}

// decorate is a generic.StorageDecorator. Each call makes a storage of its own,
// with the codec of config, over the one log of the resource. Destroying it
// leaves the log.
func (g *getter) decorate(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	keyFunc func(obj runtime.Object) (string, error),
	newFunc func() runtime.Object,
	newListFunc func() runtime.Object,
	getAttrs storage.AttrFunc,
	triggers storage.IndexerFuncs,
	indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	b, resource := g.backend, config.GroupResource
	b.mu.Lock()
	log, store, err := b.logLocked(logKey{resource, g.custom}, resourcePrefix, memory.Form{
		NewFunc:     newFunc,
		NewListFunc: newListFunc,
		Codec:       config.Codec,
		Transformer: config.Transformer,
	})
	if err != nil {
		b.mu.Unlock()
		return nil, nil, err
	}
	v := &view{log: log, ready: store.ReadinessCheck}
	if slices.Contains(b.uncached, resource) {
		b.useLocked(v, func() {})
		b.mu.Unlock()
		return store, v.destroy, nil
	}
	watchCache, stop, err := backing.StartCache(cacher.Config{
		Storage:             store,
		Versioner:           store.Versioner(),
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
		log.idleSince = b.clock.Now()
		b.mu.Unlock()
		return nil, nil, fmt.Errorf("storing %s: %w", resource, err)
	}
	v.ready = watchCache.ReadinessCheck
	b.useLocked(v, stop)
	b.mu.Unlock()
	if g.custom {
		v.waitFilled()
	}
	return watchCache, v.destroy, nil
}

const (
	// fillTimeout is what a watch cache gets to fill before its first request.
	fillTimeout = time.Second
	// fillPoll is about what it takes from an empty log.
	fillPoll = time.Millisecond
)

// waitFilled spares the first request, for which the storage is built, the answer
// that the cache is not filled: clients come back a second after that. A cache
// that takes longer answers so itself.
func (v *view) waitFilled() {
	_ = wait.PollUntilContextTimeout(context.Background(), fillPoll, fillTimeout, true, func(context.Context) (bool, error) {
		return v.ready() == nil, nil
	})
}

// useLocked counts v among the storages in use until it is destroyed.
func (b *Backend) useLocked(v *view, stop factory.DestroyFunc) {
	var once sync.Once
	v.destroy = func() {
		stop()
		once.Do(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.views, v)
			if v.log.users--; v.log.users == 0 {
				v.log.idleSince = b.clock.Now()
			}
		})
	}
	v.log.users++
	b.views[v] = struct{}{}
}
