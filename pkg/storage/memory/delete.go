// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Delete implements storage.Interface. out gets the last content with the revision of the deletion. The suggestion is
// used as GuaranteedUpdate uses it. With ExpectTransformOrDecodeError, if the feature is enabled, only an object that
// cannot be read is deleted; the validation gets nil for it, and out is not touched.
func (s *Store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, suggestion runtime.Object, opts storage.DeleteOptions) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if _, err := conversion.EnforcePtr(out); err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	expectCorrupt := opts.ExpectTransformOrDecodeError && unsafeDeletion()
	if expectCorrupt {
		suggestion = nil // it would hide whether what is stored can be read
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		present, _ := s.lookup(preparedKey)
		if present == nil {
			return storage.NewKeyNotFoundError(preparedKey, 0)
		}
		last, err := s.state(ctx, present, suggestion)
		if err == nil && expectCorrupt {
			return storage.NewInvalidObjError(preparedKey, "unsafe deletion is not allowed because the object is decodable from storage")
		}
		if err != nil && (!expectCorrupt || !isCorrupt(err)) {
			return err
		}
		suggestion = nil // whoever gets it may have written to it
		if err := preconditions.Check(preparedKey, last.object); err != nil {
			return err
		}
		if err := validateDeletion(ctx, last.object); err != nil {
			return err
		}
		gone, err := s.remove(present)
		if err != nil {
			return err
		}
		switch {
		case gone == nil: // another write came first
		case expectCorrupt:
			return nil
		default:
			return s.result(gone, last.plain, out)
		}
	}
}

// remove commits the deletion of expected if that still is the present entry, and returns nil without an error if not.
func (l *log) remove(expected *entry) (*entry, error) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.unlockAndWake()
	if l.stopped {
		return nil, errStopped
	}
	if present, _ := l.current.Get(expected); present != expected {
		return nil, nil
	}
	return l.removeLocked(expected, l.revision+1, now)
}
