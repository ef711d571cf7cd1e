// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"time"

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
	d, err := s.draft(preparedKey, obj)
	if err != nil {
		return err
	}
	created, err := s.entry(ctx, d)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done, err := s.replace(nil, created, ttl)
	if err != nil {
		return err
	}
	if !done {
		return storage.NewKeyExistsError(preparedKey, 0)
	}
	if out == nil {
		return nil
	}
	return s.result(created, d.plain, out)
}

// replace commits next if its key still is what the caller saw: expected, or nothing if that is nil. It returns false
// without an error if it is not.
func (s *Store) replace(expected, next *entry, ttl uint64) (bool, error) {
	now := s.clock.Now()
	next.expires = expiry(now, ttl)
	done, err := s.replaceAt(now, expected, next)
	if done {
		s.expiresFirst(next)
	}
	return done, err
}

func (s *Store) replaceAt(now time.Time, expected, next *entry) (bool, error) {
	s.mu.Lock()
	defer s.unlockAndWake()
	if s.stopped {
		return false, errStopped
	}
	if present, _ := s.current.Get(next); present != expected {
		return false, nil
	}
	err := s.putLocked(next, s.revision+1, now)
	return err == nil, err
}
