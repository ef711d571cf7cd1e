// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	testingclock "k8s.io/utils/clock/testing"
)

var (
	unsafeDeletionOn  = gates{features.AllowUnsafeMalformedObjectDeletion: true}
	unsafeDeletionOff = gates{features.AllowUnsafeMalformedObjectDeletion: false}
	snapshotsOff      = gates{features.ListFromCacheSnapshot: false}
	sizesOn           = gates{features.SizeBasedListCostEstimate: true}
	sizesOff          = gates{features.SizeBasedListCostEstimate: false}
)

// errCorrupt is what the cases inject where a corrupt object is meant.
var errCorrupt = &corruptError{errors.New("bits flipped")}

// plain is a case that needs nothing but a store.
func plain(function string, run func(context.Context, *testing.T, storage.Interface)) conformanceCase {
	return conformanceCase{function: function, run: func(ctx context.Context, t *testing.T, s *subject) { run(ctx, t, s.Interface) }}
}

// synced is plain, but hides from a case that does not expect it that a write reaches a cache a moment later.
func synced(function string, run func(context.Context, *testing.T, storage.Interface)) conformanceCase {
	return conformanceCase{function: function, run: func(ctx context.Context, t *testing.T, s *subject) {
		if s.cached != nil {
			s.Interface = &syncedCreate{s.cached}
		}
		run(ctx, t, s.Interface)
	}}
}

func waiting(c conformanceCase) conformanceCase {
	c.waits = true
	return c
}

// conformanceCases holds every function of the suite, in the order in which the suite has them.
var conformanceCases = []conformanceCase{
	{function: "RunTestCreate", run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreate(ctx, t, s, checkStored(s.below))
	}},
	waiting(plain("RunTestCreateWithTTL", storagetesting.RunTestCreateWithTTL)),
	plain("RunTestCreateWithKeyExist", storagetesting.RunTestCreateWithKeyExist),
	plain("RunTestGet", storagetesting.RunTestGet),
	plain("RunTestUnconditionalDelete", storagetesting.RunTestUnconditionalDelete),
	plain("RunTestConditionalDelete", storagetesting.RunTestConditionalDelete),
	plain("RunTestDeleteWithSuggestion", storagetesting.RunTestDeleteWithSuggestion),
	plain("RunTestDeleteWithSuggestionAndConflict", storagetesting.RunTestDeleteWithSuggestionAndConflict),
	plain("RunTestDeleteWithConflict", storagetesting.RunTestDeleteWithConflict),
	plain("RunTestDeleteWithSuggestionOfDeletedObject", storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	plain("RunTestValidateDeletionWithSuggestion", storagetesting.RunTestValidateDeletionWithSuggestion),
	plain("RunTestValidateDeletionWithOnlySuggestionValid", storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	plain("RunTestPreconditionalDeleteWithSuggestion", storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	plain("RunTestPreconditionalDeleteWithOnlySuggestionPass", storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	{function: "RunTestList", waits: true, run: runList, cacher: withFastCompaction},
	{function: "RunTestList", variant: "ListFromCacheSnapshot=false", waits: true, run: runList, cacher: withFastCompaction, gates: snapshotsOff, notRaw: cacherGate},
	{function: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", variant: "decode", gates: unsafeDeletionOn, notInObjectMode: noDecoder,
		run: func(ctx context.Context, t *testing.T, s *subject) {
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.failDecoding)
		}},
	{function: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", variant: "transform", gates: unsafeDeletionOn, notInObjectMode: noTransformer,
		run: func(ctx context.Context, t *testing.T, s *subject) {
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.failTransformer)
		}},
	{function: "RunTestDeleteExpectedTransformOrDecodeError", variant: "decode", gates: unsafeDeletionOn, notInObjectMode: noDecoder,
		run: func(ctx context.Context, t *testing.T, s *subject) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.failDecoding)
		}},
	{function: "RunTestDeleteExpectedTransformOrDecodeError", variant: "transform", gates: unsafeDeletionOn, notInObjectMode: noTransformer,
		run: func(ctx context.Context, t *testing.T, s *subject) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.failTransformer)
		}},
	{function: "RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", gates: unsafeDeletionOn, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
	}},
	{function: "RunTestConsistentList", run: runConsistentList(true)},
	{function: "RunTestConsistentList", variant: "ListFromCacheSnapshot=false", run: runConsistentList(false), gates: snapshotsOff, notRaw: cacherGate},
	{function: "RunTestGetListNonRecursive", waits: true, run: runGetListNonRecursive},
	{function: "RunTestGetListNonRecursive", variant: "ListFromCacheSnapshot=false", waits: true, run: runGetListNonRecursive, gates: snapshotsOff, notRaw: cacherGate},
	plain("RunTestGetListRecursivePrefix", storagetesting.RunTestGetListRecursivePrefix),
	{function: "RunTestGetListWithErrorAggregation", gates: unsafeDeletionOn, notInObjectMode: noTransformer, notCached: listsFromCache, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s.transforming(), errCorrupt)
	}},
	{function: "RunTestGetListWithoutErrorAggregation", gates: unsafeDeletionOff, notInObjectMode: noTransformer, notCached: listsFromCache, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s.transforming(), errCorrupt)
	}},
	{function: "RunTestListContinuation", alteredInObjectMode: readsNotCounted, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuation(ctx, t, s, s.checkReads)
	}},
	{function: "RunTestListPaginationRareObject", alteredInObjectMode: readsNotCounted, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.checkReads)
	}},
	{function: "RunTestListContinuationWithFilter", alteredInObjectMode: readsNotCounted, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.checkReads)
	}},
	{function: "RunTestListInconsistentContinuation", notCached: noPagesFromCache, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	{function: "RunTestListResourceVersionMatch", run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s.prefixed())
	}},
	{function: "RunTestGuaranteedUpdate", alteredInObjectMode: staleImitated, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s.prefixed(), checkStored(s.below))
	}},
	waiting(plain("RunTestGuaranteedUpdateWithTTL", storagetesting.RunTestGuaranteedUpdateWithTTL)),
	{function: "RunTestGuaranteedUpdateChecksStoredData", notInObjectMode: noBytes, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s.prefixed())
	}},
	plain("RunTestGuaranteedUpdateWithConflict", storagetesting.RunTestGuaranteedUpdateWithConflict),
	plain("RunTestGuaranteedUpdateWithSuggestionAndConflict", storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	{function: "RunTestTransformationFailure", gates: unsafeDeletionOff, notInObjectMode: noTransformer, notCached: readBefore, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestTransformationFailure(ctx, t, s.prefixed())
	}},
	{function: "RunTestStats", run: runStats(false), gates: sizesOff},
	{function: "RunTestStats", variant: "SizeBasedListCostEstimate=true", run: runStats(true), gates: sizesOn,
		notInObjectMode: "expects the average of encoded sizes to the byte; object mode estimates, see TestStatsEstimatesSize"},
	plain("RunTestListPaging", storagetesting.RunTestListPaging),
	{function: "RunTestNamespaceScopedList", cacher: withIndexes, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedList(ctx, t, s)
	}},
	{function: "RunTestCompactRevision", cacher: withFastCompaction, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCompactRevision(ctx, t, s, increaseRevision(s.below), s.compact)
	}},
	plain("RunTestKeySchema", storagetesting.RunTestKeySchema),

	plain("RunTestWatch", storagetesting.RunTestWatch),
	{function: "RunTestWatchFromZero", run: func(ctx context.Context, t *testing.T, s *subject) {
		if s.cached != nil {
			storagetesting.RunTestWatchFromZero(ctx, t, s, nil) // the cacher has no compaction of its history
			return
		}
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	plain("RunTestDeleteTriggerWatch", storagetesting.RunTestDeleteTriggerWatch),
	plain("RunTestWatchFromNonZero", storagetesting.RunTestWatchFromNonZero),
	{function: "RunTestDelayedWatchDelivery", waits: true, alteredCached: writesSlowed, run: func(ctx context.Context, t *testing.T, s *subject) {
		if s.cached != nil {
			s.Interface = &slowWrites{s.cached}
		}
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, s)
	}},
	{function: "RunTestWatchError", notInObjectMode: noTransformer, notCached: cacherListsAgain, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchError(ctx, t, s.prefixed())
	}},
	{function: "RunTestWatchWithUnsafeDelete", gates: unsafeDeletionOn, notInObjectMode: noTransformer, notCached: cacherListsAgain, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s.transforming(), errCorrupt)
	}},
	plain("RunTestWatchContextCancel", storagetesting.RunTestWatchContextCancel),
	plain("RunTestWatcherTimeout", storagetesting.RunTestWatcherTimeout),
	plain("RunTestWatchDeleteEventObjectHaveLatestRV", storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	plain("RunTestWatchInitializationSignal", storagetesting.RunTestWatchInitializationSignal),
	{function: "RunOptionalTestProgressNotify", notCached: noProgressFromCache,
		store: func(cfg *Config) { cfg.Clock = testingclock.NewFakeClock(time.Now()) },
		run: func(ctx context.Context, t *testing.T, s *subject) {
			s.stepClock(t)
			storagetesting.RunOptionalTestProgressNotify(ctx, t, s, increaseRevision(s.below))
		}},
	{function: "RunTestClusterScopedWatch", cacher: withClusterScope, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, s)
	}},
	{function: "RunTestNamespaceScopedWatch", cacher: withIndexes, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedWatch(ctx, t, s)
	}},
	{function: "RunTestWatchDispatchBookmarkEvents", waits: true, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, s.cached != nil)
	}},
	{function: "RunTestOptionalWatchBookmarksWithCorrectResourceVersion", notRaw: noClientBookmarks, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, s)
	}},
	plain("RunSendInitialEventsBackwardCompatibility", storagetesting.RunSendInitialEventsBackwardCompatibility),
	synced("RunWatchSemantics", storagetesting.RunWatchSemantics),
	synced("RunWatchSemanticInitialEventsExtended", storagetesting.RunWatchSemanticInitialEventsExtended),
	synced("RunWatchListMatchSingle", storagetesting.RunWatchListMatchSingle),
	{function: "RunWatchErrorIsBlockingFurtherEvents", notInObjectMode: noTransformer, notCached: cacherListsAgain, run: func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s.prefixed())
	}},
}

// Reasons.
const (
	noTransformer = "breaks the transformer between writing and reading; object mode has none"
	noDecoder     = "makes stored bytes undecodable; object mode does not decode"
	noBytes       = "stores the same object in other bytes; object mode has no bytes"

	cacherGate        = "the feature gate concerns the cacher alone"
	noClientBookmarks = "the bookmarks that clients ask for are made by the cacher; those of the store are in RunOptionalTestProgressNotify"

	listsFromCache      = "breaks the transformer after objects were written; the cacher holds them already, and lists them"
	readBefore          = "writes with another transformer and puts the first one back; the cacher may have read the object in between"
	noPagesFromCache    = "needs pages at resourceVersion 0, where the cacher answers with everything"
	cacherListsAgain    = "needs the error of the watch that reads from the store; the cacher keeps it, and lists again"
	noProgressFromCache = "the bookmarks of the store end in the cacher; its own are in RunTestWatchDispatchBookmarkEvents"

	staleImitated   = "object mode has no transformer, so no stale values: the test imitates them by a write before the update"
	readsNotCounted = "how many objects a LIST decodes is not checked; object mode does not decode"
	writesSlowed    = "the test writes at the pace of an etcd; a burst of writes to memory makes the cacher end the watch"
)

func runList(ctx context.Context, t *testing.T, s *subject) {
	var recorder *storagetesting.KubernetesRecorder
	if s.cached != nil {
		recorder = s.cached.recorder
	}
	storagetesting.RunTestList(ctx, t, s, s.compactAsEtcd, s.cached != nil, recorder)
}

func runConsistentList(snapshots bool) func(context.Context, *testing.T, *subject) {
	return func(ctx context.Context, t *testing.T, s *subject) {
		cached := s.cached != nil
		storagetesting.RunTestConsistentList(ctx, t, s, increaseRevision(s.below), cached, true, cached && snapshots)
	}
}

func runGetListNonRecursive(ctx context.Context, t *testing.T, s *subject) {
	storagetesting.RunTestGetListNonRecursive(ctx, t, increaseRevision(s.below), s)
}

func runStats(sizes bool) func(context.Context, *testing.T, *subject) {
	return func(ctx context.Context, t *testing.T, s *subject) {
		if sizes && s.cached == nil { // the cacher does it itself
			err := s.below.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		transformer := value.Transformer(identity.NewEncryptCheckTransformer())
		if s.transformer != nil {
			transformer = s.transformer
		}
		storagetesting.RunTestStats(ctx, t, s, podCodec(), transformer, sizes)
	}
}
