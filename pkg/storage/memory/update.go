// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// GuaranteedUpdate implements storage.Interface. tryUpdate gets a copy that it may change, is called without a lock, and
// again with the new object if another write came first. An update that changes nothing but resourceVersion and selfLink
// is not written and makes no new revision. The time to live is what tryUpdate returns; nil means for ever, as with etcd.
//
// The suggestion is not needed: it spares a read from a remote store, and here the present object is at hand. So
// tryUpdate and the preconditions never see stale data.
func (s *Store) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	target, err := conversion.EnforcePtr(destination)
	if err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		present, _ := s.lookup(preparedKey)
		result, err := s.tryUpdate(preparedKey, present, target, ignoreNotFound, preconditions, tryUpdate)
		if err != nil {
			return err
		}
		if result != nil {
			return result.copyInto(destination)
		}
	}
}

// tryUpdate is one round. It returns nil without an error if another write came first.
func (s *Store) tryUpdate(
	key string, present *entry, target reflect.Value, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc) (*entry, error) {
	input, meta, err := updateInput(key, present, target, ignoreNotFound)
	if err != nil {
		return nil, err
	}
	if err := preconditions.Check(key, input); err != nil {
		return nil, err
	}
	output, ttl, err := update(input, meta)
	if err != nil {
		return nil, err
	}
	prepared, err := s.prepareObject(key, output)
	if err != nil {
		return nil, err
	}
	if present != nil {
		same, err := sameContent(prepared, present)
		if err != nil || same {
			return present, err
		}
	}
	if ttl == nil {
		return s.replace(key, present, prepared, 0)
	}
	return s.replace(key, present, prepared, *ttl)
}

// updateInput is what an update function gets: a copy of the present object, or an empty one.
func updateInput(key string, present *entry, target reflect.Value, ignoreNotFound bool) (runtime.Object, storage.ResponseMeta, error) {
	if present != nil {
		return present.private(), storage.ResponseMeta{ResourceVersion: present.revision}, nil
	}
	if !ignoreNotFound {
		return nil, storage.ResponseMeta{}, storage.NewKeyNotFoundError(key, 0)
	}
	if u, ok := target.Addr().Interface().(runtime.Unstructured); ok {
		return u.NewEmptyInstance(), storage.ResponseMeta{}, nil
	}
	empty, ok := reflect.New(target.Type()).Interface().(runtime.Object)
	if !ok {
		return nil, storage.ResponseMeta{}, fmt.Errorf("updating key %q: *%s is not an object", key, target.Type())
	}
	return empty, storage.ResponseMeta{}, nil
}

// sameContent tells whether prepared is what is stored already. Nil and empty are different here, as they are to clients
// that read JSON. It writes the resourceVersion of present into prepared, which putLocked overwrites if they differ.
func sameContent(prepared runtime.Object, present *entry) (bool, error) {
	if err := versioner.UpdateObject(prepared, present.revision); err != nil {
		return false, err
	}
	return apiequality.Semantic.DeepEqualWithNilDifferentFromEmpty(prepared, present.shared()), nil
}
