// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/clock"
)

const (
	// defaultHistoryLimit is the number of changes kept. A label flip of a large site rewrites some 4,000
	// slices; twice that, and some room, lets a watch that is one flip behind go on. See also log.historyLimitLocked.
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

// Store is a storage.Interface in memory: a log, and the form in which its objects are read and written. All methods may
// be called concurrently. New starts background work that Stop ends.
type Store struct {
	*log
	form
	// estimateSize: see EnableResourceSizeEstimation.
	estimateSize atomic.Bool
}

var _ storage.Interface = (*Store)(nil)

// New returns an empty Store. The caller must Stop it.
func New(cfg Config) (*Store, error) {
	switch {
	case len(cfg.ResourcePrefix) < 2 || cfg.ResourcePrefix[0] != '/':
		return nil, fmt.Errorf("memory store of %s: resource prefix %q: must begin with a slash and name the resource", cfg.GroupResource, cfg.ResourcePrefix)
	case cfg.HistoryLimit < 0 || cfg.HistoryAge < 0:
		return nil, fmt.Errorf("memory store of %s: negative history limit or age", cfg.GroupResource)
	}
	f, err := newForm(Form{NewFunc: cfg.NewFunc, NewListFunc: cfg.NewListFunc, Codec: cfg.Codec, Transformer: cfg.Transformer})
	if err != nil {
		return nil, fmt.Errorf("memory store of %s: %w", cfg.GroupResource, err)
	}
	return &Store{log: newLog(cfg), form: f}, nil
}

// Versioner implements storage.Interface.
func (s *Store) Versioner() storage.Versioner { return versioner }

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
