// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
)

// RequestWatchProgress implements storage.Interface: every watch with ProgressNotify gets a bookmark with the revision of
// the store as soon as it has delivered everything up to it.
func (l *log) RequestWatchProgress(context.Context) error {
	l.requestProgress()
	return nil
}

func (l *log) requestProgress() {
	l.mu.Lock()
	l.progress++
	l.unlockAndWake()
}

var enableWatchProgress sync.Once

// EnableWatchProgress makes this process know that its storage supports RequestWatchProgress. The stock checker says no
// until an etcd client has reported, and with that answer the stock cacher refuses WatchList and sends every LIST without
// a resourceVersion past its cache, silently, because clients fall back to LIST. Call it before the first cacher is
// created, as it replaces a package variable of k8s.io/apiserver that cachers read; later calls do nothing. All other
// answers stay those of the checker that was there.
func EnableWatchProgress() {
	enableWatchProgress.Do(func() {
		feature.DefaultFeatureSupportChecker = progressSupported{feature.DefaultFeatureSupportChecker}
	})
}

type progressSupported struct{ feature.FeatureSupportChecker }

var _ feature.FeatureSupportChecker = progressSupported{}

// Supports implements feature.FeatureSupportChecker.
func (p progressSupported) Supports(name storage.Feature) bool {
	return name == storage.RequestWatchProgress || p.FeatureSupportChecker.Supports(name)
}
