// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	testingclock "k8s.io/utils/clock/testing"
)

// TestConformance runs the suite that etcd's storage and the stock cacher must pass, on the store itself. What needs an
// encoder is listed in conformance_skipped_test.go, what the cacher runs in conformance_cacher_test.go.
func TestConformance(t *testing.T) {
	type run = func(context.Context, *testing.T, *Store)
	plain := func(test func(context.Context, *testing.T, storage.Interface)) run {
		return func(ctx context.Context, t *testing.T, s *Store) { test(ctx, t, s) }
	}
	for _, test := range []struct {
		name string
		run  run
	}{
		{"Create", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestCreate(ctx, t, s, checkStored(s))
		}},
		{"CreateWithTTL", plain(storagetesting.RunTestCreateWithTTL)},
		{"CreateWithKeyExist", plain(storagetesting.RunTestCreateWithKeyExist)},
		{"Get", plain(storagetesting.RunTestGet)},
		{"UnconditionalDelete", plain(storagetesting.RunTestUnconditionalDelete)},
		{"ConditionalDelete", plain(storagetesting.RunTestConditionalDelete)},
		{"DeleteWithSuggestion", plain(storagetesting.RunTestDeleteWithSuggestion)},
		{"DeleteWithSuggestionAndConflict", plain(storagetesting.RunTestDeleteWithSuggestionAndConflict)},
		{"DeleteWithSuggestionOfDeletedObject", plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject)},
		{"ValidateDeletionWithSuggestion", plain(storagetesting.RunTestValidateDeletionWithSuggestion)},
		{"ValidateDeletionWithOnlySuggestionValid", plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid)},
		{"DeleteWithConflict", plain(storagetesting.RunTestDeleteWithConflict)},
		{"DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", func(ctx context.Context, t *testing.T, s *Store) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		}},
		{"PreconditionalDeleteWithSuggestion", plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion)},
		{"PreconditionalDeleteWithOnlySuggestionPass", plain(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass)},
		{"ListPaging", plain(storagetesting.RunTestListPaging)},
		{"GetListNonRecursive", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, increaseRevision(s), s)
		}},
		{"GetListRecursivePrefix", plain(storagetesting.RunTestGetListRecursivePrefix)},
		{"KeySchema", plain(storagetesting.RunTestKeySchema)},
		{"GuaranteedUpdate", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, &withTransformerHook{Store: s}, checkStored(s))
		}},
		{"GuaranteedUpdateWithTTL", plain(storagetesting.RunTestGuaranteedUpdateWithTTL)},
		{"GuaranteedUpdateWithConflict", plain(storagetesting.RunTestGuaranteedUpdateWithConflict)},
		{"GuaranteedUpdateWithSuggestionAndConflict", plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict)},
		{"List", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestList(ctx, t, s, compactAsEtcd(s), false, nil)
		}},
		{"ConsistentList", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestConsistentList(ctx, t, s, increaseRevision(s), false, true, false)
		}},
		{"CompactRevision", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestCompactRevision(ctx, t, s, increaseRevision(s), compactTo(s))
		}},
		{"ListContinuation", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestListContinuation(ctx, t, s, countsNothing)
		}},
		{"ListPaginationRareObject", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, countsNothing)
		}},
		{"ListContinuationWithFilter", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, s, countsNothing)
		}},
		{"ListInconsistentContinuation", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, s, compactTo(s))
		}},
		{"ListResourceVersionMatch", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestListResourceVersionMatch(ctx, t, &withTransformerHook{Store: s})
		}},
		{"NamespaceScopedList", plain(storagetesting.RunTestNamespaceScopedList)},
		{"Stats", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestStats(ctx, t, s, podCodec(t), identity.NewEncryptCheckTransformer(), false)
		}},
		{"Watch", plain(storagetesting.RunTestWatch)},
		{"ClusterScopedWatch", plain(storagetesting.RunTestClusterScopedWatch)},
		{"NamespaceScopedWatch", plain(storagetesting.RunTestNamespaceScopedWatch)},
		{"DeleteTriggerWatch", plain(storagetesting.RunTestDeleteTriggerWatch)},
		{"WatchFromZero", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestWatchFromZero(ctx, t, s, compactTo(s))
		}},
		{"WatchFromNonZero", plain(storagetesting.RunTestWatchFromNonZero)},
		{"DelayedWatchDelivery", plain(storagetesting.RunTestDelayedWatchDelivery)},
		{"WatchContextCancel", plain(storagetesting.RunTestWatchContextCancel)},
		{"WatcherTimeout", plain(storagetesting.RunTestWatcherTimeout)},
		{"WatchDeleteEventObjectHaveLatestRV", plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV)},
		{"WatchInitializationSignal", plain(storagetesting.RunTestWatchInitializationSignal)},
		{"WatchDispatchBookmarkEvents", func(ctx context.Context, t *testing.T, s *Store) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		}},
		{"SendInitialEventsBackwardCompatibility", plain(storagetesting.RunSendInitialEventsBackwardCompatibility)},
		{"WatchSemantics", plain(storagetesting.RunWatchSemantics)},
		{"WatchSemanticInitialEventsExtended", plain(storagetesting.RunWatchSemanticInitialEventsExtended)},
		{"WatchListMatchSingle", plain(storagetesting.RunWatchListMatchSingle)},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(context.Background(), t, newTestStore(t))
		})
	}
}

// TestConformanceProgressNotify needs time to pass, and moves the clock until the bookmark has come.
func TestConformanceProgressNotify(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	store := newTestStore(t, func(cfg *Config) { cfg.Clock = clock })
	done := make(chan struct{})
	var stepping sync.WaitGroup
	stepping.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				clock.Step(progressInterval)
			}
		}
	})
	defer stepping.Wait()
	defer close(done)
	storagetesting.RunOptionalTestProgressNotify(t.Context(), t, store, increaseRevision(store))
}

var _ storagetesting.InterfaceWithPrefixTransformer = (*withTransformerHook)(nil)
var _ runtime.Object = (*timedObject)(nil)
