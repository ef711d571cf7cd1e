// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// deferredStore holds reads of a store back until it is filled. The watch cache
// above it then begins with what is to be served, at its revision: it is not
// initialised before, and a watch from an earlier revision has expired. Had it
// begun with the empty store, it would take such a revision for a time at which
// there was nothing, and never tell of what was deleted since.
type deferredStore struct {
	*memory.Store
	filled <-chan struct{}
	// stopped ends the wait of the watch cache, which has no context of its own.
	stopped <-chan struct{}
}

var _ storage.Interface = &deferredStore{}

func (d *deferredStore) wait(ctx context.Context) error {
	select {
	case <-d.filled:
		return nil
	case <-d.stopped:
		return fmt.Errorf("the store was not filled: %w", storage.ErrStorageNotReady)
	case <-ctx.Done():
		return fmt.Errorf("the store was not filled: %w", context.Cause(ctx))
	}
}

// ReadinessCheck implements storage.Interface.
func (d *deferredStore) ReadinessCheck() error {
	select {
	case <-d.filled:
		return d.Store.ReadinessCheck()
	default:
		return storage.ErrStorageNotReady
	}
}

// Watch implements storage.Interface.
func (d *deferredStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	return d.Store.Watch(ctx, key, opts)
}

// Get implements storage.Interface.
func (d *deferredStore) Get(ctx context.Context, key string, opts storage.GetOptions, into runtime.Object) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.Get(ctx, key, opts, into)
}

// GetList implements storage.Interface.
func (d *deferredStore) GetList(ctx context.Context, key string, opts storage.ListOptions, into runtime.Object) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Store.GetList(ctx, key, opts, into)
}
