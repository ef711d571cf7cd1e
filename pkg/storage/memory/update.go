// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// GuaranteedUpdate implements storage.Interface. tryUpdate gets a copy that it may change, is called without a lock, and
// again with the new object if another write came first. An update that changes nothing but resourceVersion and selfLink
// is not written and makes no new revision. The time to live is what tryUpdate returns; nil means for ever, as with etcd.
//
// A suggestion is meant to spare a read from a remote store; here the present version is at hand. In codec mode one that
// is known to be the present version spares decoding it, any other is ignored. So tryUpdate and the preconditions never
// see stale data.
func (s *Store) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, suggestion runtime.Object) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if _, err := conversion.EnforcePtr(destination); err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	u := guaranteedUpdate{
		store: s, key: preparedKey, destination: destination, ignoreNotFound: ignoreNotFound,
		preconditions: preconditions, tryUpdate: tryUpdate, suggestion: suggestion,
	}
	for {
		if done, err := u.round(ctx); done || err != nil {
			return err
		}
		u.suggestion = nil // tryUpdate may have written to it
	}
}

// guaranteedUpdate is one call of GuaranteedUpdate.
type guaranteedUpdate struct {
	store          *Store
	key            string
	destination    runtime.Object
	ignoreNotFound bool
	preconditions  *storage.Preconditions
	tryUpdate      storage.UpdateFunc
	suggestion     runtime.Object
}

// round returns false without an error if another write came first.
func (u *guaranteedUpdate) round(ctx context.Context) (done bool, err error) {
	s := u.store
	if err := ctx.Err(); err != nil {
		return false, err
	}
	present, err := u.present(ctx)
	if err != nil {
		return false, err
	}
	meta := storage.ResponseMeta{}
	if present.entry != nil {
		meta.ResourceVersion = present.entry.revision
	}
	if err := u.preconditions.Check(u.key, present.object); err != nil {
		return false, err
	}
	output, ttl, err := u.tryUpdate(present.object, meta)
	if err != nil {
		return false, err
	}
	d, err := s.draft(u.key, output)
	if err != nil {
		return false, err
	}
	if present.entry != nil {
		same, err := s.unchanged(d, present)
		if err != nil {
			return false, err
		}
		if same {
			return true, s.result(present.entry, present.plain, u.destination)
		}
	}
	next, err := s.entry(ctx, d)
	if err != nil {
		return false, err
	}
	if ttl == nil {
		ttl = new(uint64)
	}
	if done, err := s.replace(present.entry, next, *ttl); !done {
		return false, err
	}
	return true, s.result(next, d.plain, u.destination)
}

// present returns what tryUpdate gets: the present object, or an empty one.
func (u *guaranteedUpdate) present(ctx context.Context) (state, error) {
	if found, _ := u.store.lookup(u.key); found != nil {
		return u.store.state(ctx, found, u.suggestion)
	}
	if !u.ignoreNotFound {
		return state{}, storage.NewKeyNotFoundError(u.key, 0)
	}
	if unstructured, ok := u.destination.(runtime.Unstructured); ok {
		return state{object: unstructured.NewEmptyInstance()}, nil
	}
	empty := reflect.New(reflect.TypeOf(u.destination).Elem())
	return state{object: empty.Interface().(runtime.Object)}, nil
}
