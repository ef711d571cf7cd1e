// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/btree"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/clock"
)

const (
	// defaultHistoryLimit is the number of changes kept. A label flip of a large site rewrites some 4,000
	// slices; twice that, and some room, lets a watch that is one flip behind go on. See also Store.historyLimitLocked.
	defaultHistoryLimit = 10_000
	// defaultHistoryAge is how long a change is kept. Kubernetes compacts its etcd every five minutes, so that is the
	// least time that clients of a paged LIST or of a watch are used to have.
	defaultHistoryAge = 5 * time.Minute
)

// versioner reads and writes resourceVersions.
var versioner storage.Versioner = storage.APIObjectVersioner{}

// Config says what a Store holds.
type Config struct {
	// GroupResource names the resource in errors and logs.
	GroupResource schema.GroupResource
	// ResourcePrefix is what all keys start with, "/services"; the keys are "/services/<namespace>/<name>", or
	// "/nodes/<name>". Required, begins with a slash.
	ResourcePrefix string
	// NewFunc returns an empty object of the type that is stored. Required: bookmarks are such objects, and an object of
	// another type is refused.
	NewFunc func() runtime.Object
	// NewListFunc returns an empty list of the objects. If it is there, New checks that the two fit together.
	NewListFunc func() runtime.Object
	// InitialRevision is the revision of the empty store; the first change gets InitialRevision+1. 0 stands for 1, because
	// resourceVersion "0" means "any" to clients.
	InitialRevision uint64
	// HistoryLimit is the number of changes kept for watches and for LISTs of the past. 0: the larger of 10,000 and the
	// number of objects, so that rewriting every object once does not expire a watch that had caught up.
	HistoryLimit int
	// HistoryAge is how long a change is kept. 0: five minutes.
	HistoryAge time.Duration
	// Codec switches codec mode on: objects are kept encoded by it, and decoded for each reader. It must decode what it
	// encodes into the type of NewFunc. nil: object mode.
	Codec runtime.Codec
	// Transformer is applied to encoded objects, with the key as authenticated data. It may be slow or fail, but must not
	// write to the bytes that it is given. nil: none. It needs Codec.
	Transformer value.Transformer
	// Clock drives the age of the history, the time to live of objects and the periodic bookmarks. nil: the real clock.
	Clock clock.WithTicker
}

// Store is a storage.Interface in memory. All methods may be called concurrently. New starts background work that Stop
// ends.
type Store struct {
	groupResource  schema.GroupResource
	resourcePrefix string
	newFunc        func() runtime.Object
	objectType     reflect.Type
	codec          *codec // nil: object mode
	historyLimit   int
	historyAge     time.Duration
	clock          clock.WithTicker

	// stopping is closed by Stop; running counts the background work and the watches.
	stopping chan struct{}
	running  sync.WaitGroup
	// earlier tells the background work that a key now expires before what it sleeps for. Capacity 1, never blocks.
	earlier chan struct{}
	// awaited is set by watches that are about to sleep on changed, and cleared by the writer who replaces changed.
	awaited atomic.Bool

	// mu guards everything below.
	mu       sync.RWMutex
	stopped  bool
	current  *tree
	expiring *btree.BTreeG[*entry] // the entries of current that expire, by time
	// clone is a clone of current that readers share; nil after a change, made again by the next reader.
	clone    *tree
	history  history
	revision uint64
	// floor is the oldest revision from which the window still knows everything: watches and LISTs below it are expired.
	floor uint64
	// compacted is what CompactRevision returns: floor, but 0 as long as nothing was forgotten.
	compacted uint64
	// epoch counts the Resets. A watch that began in another epoch is expired.
	epoch uint64
	// ambiguous is the largest revision that there was before a Reset. Up to it a revision may have been given twice, and
	// does not tell the versions of a key apart.
	ambiguous uint64
	// progress counts the requests for bookmarks.
	progress uint64
	// changed is closed when there is something new for the watches.
	changed chan struct{}
	// estimateSize: see EnableResourceSizeEstimation.
	estimateSize bool
}

var _ storage.Interface = (*Store)(nil)

// New returns an empty Store. The caller must Stop it.
func New(cfg Config) (*Store, error) {
	switch {
	case len(cfg.ResourcePrefix) < 2 || cfg.ResourcePrefix[0] != '/':
		return nil, fmt.Errorf("memory store of %s: resource prefix %q: must begin with a slash and name the resource", cfg.GroupResource, cfg.ResourcePrefix)
	case cfg.NewFunc == nil:
		return nil, fmt.Errorf("memory store of %s: NewFunc is required", cfg.GroupResource)
	case cfg.HistoryLimit < 0 || cfg.HistoryAge < 0:
		return nil, fmt.Errorf("memory store of %s: negative history limit or age", cfg.GroupResource)
	case cfg.Transformer != nil && cfg.Codec == nil:
		return nil, fmt.Errorf("memory store of %s: a Transformer needs a Codec", cfg.GroupResource)
	}
	objectType := reflect.TypeOf(cfg.NewFunc())
	if objectType == nil || objectType.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("memory store of %s: NewFunc must return a pointer, got %v", cfg.GroupResource, objectType)
	}
	if cfg.NewListFunc != nil {
		if err := checkListType(objectType, cfg.NewListFunc()); err != nil {
			return nil, fmt.Errorf("memory store of %s: %w", cfg.GroupResource, err)
		}
	}
	s := &Store{
		groupResource:  cfg.GroupResource,
		resourcePrefix: cfg.ResourcePrefix,
		newFunc:        cfg.NewFunc,
		objectType:     objectType,
		codec:          newCodec(cfg),
		historyLimit:   cfg.HistoryLimit,
		historyAge:     cfg.HistoryAge,
		clock:          cfg.Clock,
		stopping:       make(chan struct{}),
		earlier:        make(chan struct{}, 1),
		current:        newTree(),
		expiring:       newExpiryTree(),
		revision:       max(cfg.InitialRevision, 1),
		changed:        make(chan struct{}),
	}
	if s.historyAge == 0 {
		s.historyAge = defaultHistoryAge
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	s.floor = s.revision
	s.running.Add(1)
	go s.maintain()
	return s, nil
}

// Stop ends the background work and all watches, and waits for them. Later watches and writes fail; reads go on. It may
// be called more than once.
func (s *Store) Stop() {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.stopping)
	}
	s.mu.Unlock()
	s.running.Wait()
}

var errStopped = errors.New("the store was stopped")

// Versioner implements storage.Interface.
func (s *Store) Versioner() storage.Versioner { return versioner }

// Revision returns the revision of the last change, or the one that Advance or Reset set since.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// GetCurrentResourceVersion implements storage.Interface; it is Revision, so the resource's own.
func (s *Store) GetCurrentResourceVersion(context.Context) (uint64, error) { return s.Revision(), nil }

// ReadinessCheck implements storage.Interface: a store is ready until it is stopped. Whether what it holds is complete is
// known to its writer.
func (s *Store) ReadinessCheck() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.stopped {
		return storage.ErrStorageNotReady
	}
	return nil
}

// Get implements storage.Interface. It always answers with the present, which is as new as any resourceVersion that the
// caller can ask for; a larger one gets "too large resource version".
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	found, revision := s.lookup(preparedKey)
	if err := validateMinimum(opts.ResourceVersion, revision); err != nil {
		return err
	}
	if found == nil {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(preparedKey, 0)
	}
	return corruptObject(preparedKey, s.readInto(ctx, found, out))
}

// lookup returns the present entry of key, nil if there is none, and the revision of the store.
func (s *Store) lookup(key string) (*entry, uint64) {
	pivot := entry{key: key}
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, _ := s.current.Get(&pivot)
	return found, s.revision
}

func (s *Store) prepareKey(key string, recursive bool) (string, error) {
	return storage.PrepareKey(s.resourcePrefix, key, recursive)
}

// validateMinimum is the rule of "not older than", which is also that of a resourceVersion without a match rule.
func validateMinimum(minimum string, actual uint64) error {
	if minimum == "" {
		return nil
	}
	revision, err := versioner.ParseResourceVersion(minimum)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if revision > actual {
		return storage.NewTooLargeResourceVersionError(revision, actual, 0)
	}
	return nil
}
