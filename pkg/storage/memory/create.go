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
func (l *log) replace(expected, next *entry, ttl uint64) (bool, error) {
	now := l.clock.Now()
	next.expires = expiry(now, ttl)
	done, err := l.replaceAt(now, expected, next)
	if done {
		l.expiresFirst(next)
	}
	return done, err
}

func (l *log) replaceAt(now time.Time, expected, next *entry) (bool, error) {
	l.mu.Lock()
	defer l.unlockAndWake()
	if l.stopped {
		return false, errStopped
	}
	if present, _ := l.current.Get(next); present != expected {
		return false, nil
	}
	err := l.putLocked(next, l.revision+1, now)
	return err == nil, err
}
