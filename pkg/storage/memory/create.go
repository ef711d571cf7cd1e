// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Create implements storage.Interface. obj is copied, and not written to.
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if version, err := versioner.ObjectResourceVersion(obj); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	prepared, err := s.prepareObject(preparedKey, obj)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	created, err := s.replace(preparedKey, nil, prepared, ttl)
	if err != nil {
		return err
	}
	if created == nil {
		return storage.NewKeyExistsError(preparedKey, 0)
	}
	if out == nil {
		return nil
	}
	return created.copyInto(out)
}

// prepareObject returns a copy of obj as it goes into the log.
func (s *Store) prepareObject(key string, obj runtime.Object) (runtime.Object, error) {
	if err := s.checkObject(key, obj); err != nil {
		return nil, err
	}
	prepared := obj.DeepCopyObject()
	if err := versioner.PrepareObjectForStorage(prepared); err != nil {
		return nil, fmt.Errorf("preparing key %q for storage: %w", key, err)
	}
	return prepared, nil
}

// replace commits object under key if the key still is what the caller saw: expected, or nothing if that is nil. It
// returns nil without an error if it is not.
func (s *Store) replace(key string, expected *entry, object runtime.Object, ttl uint64) (*entry, error) {
	now := s.clock.Now()
	committed, err := func() (*entry, error) {
		s.mu.Lock()
		defer s.unlockAndWake()
		if s.stopped {
			return nil, errStopped
		}
		if present, _ := s.current.Get(&entry{key: key}); present != expected {
			return nil, nil
		}
		return s.putLocked(key, object, s.revision+1, expiry(now, ttl), now)
	}()
	if committed != nil {
		s.expiresFirst(committed)
	}
	return committed, err
}
