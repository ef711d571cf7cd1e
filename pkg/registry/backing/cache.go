// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing

import (
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
)

// StartCache starts the watch cache of k8s.io/apiserver over cfg.Storage. The
// DestroyFunc stops it, and waits until it has; it may be called more than once
// and does not touch the storage.
//
// memory.EnableWatchProgress must have been called before.
func StartCache(cfg cacher.Config) (*cacher.CacheDelegator, factory.DestroyFunc, error) {
	below := cfg.Storage
	source := newDrainedStore(below)
	cfg.Storage = source
	// Below this the cache refuses to start: it promises to replay that much
	// history to a client that resumes.
	cfg.EventsHistoryWindow = max(cfg.EventsHistoryWindow, cacher.DefaultEventFreshDuration)
	watchCache, err := cacher.NewCacherFromConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("starting the watch cache of %s: %w", cfg.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, below)
	var once sync.Once
	return delegator, func() {
		once.Do(func() {
			source.drain()
			delegator.Stop()
			watchCache.Stop()
		})
	}, nil
}
