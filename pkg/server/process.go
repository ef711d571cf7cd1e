// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/grid-apiserver/grid-apiserver/pkg/auth"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// setUpProcess makes the settings that k8s.io/apiserver keeps per process. They
// must be in place before the first watch cache is made.
var setUpProcess = sync.OnceValue(func() error {
	// Else WatchList answers 500 and LISTs bypass the watch caches.
	memory.EnableWatchProgress()
	// It compares each watch cache with the store below it by a full LIST every
	// few minutes. The two share their objects.
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(features.DetectCacheInconsistency) + "=false"); err != nil {
		return fmt.Errorf("switch %s off: %w", features.DetectCacheInconsistency, err)
	}
	watchcache.RegisterMetrics()
	auth.Register()
	return nil
})
