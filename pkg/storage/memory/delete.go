// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// Delete implements storage.Interface. out gets the last content with the revision of the deletion. The suggestion is not
// needed, as with GuaranteedUpdate. An object here can always be read, so the unsafe deletion of corrupt ones is refused.
func (s *Store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, _ runtime.Object, opts storage.DeleteOptions) error {
	preparedKey, err := s.prepareKey(key, false)
	if err != nil {
		return err
	}
	if _, err := conversion.EnforcePtr(out); err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %w", err)
	}
	expectCorrupt := opts.ExpectTransformOrDecodeError &&
		utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		present, _ := s.lookup(preparedKey)
		if present == nil {
			return storage.NewKeyNotFoundError(preparedKey, 0)
		}
		if expectCorrupt {
			return storage.NewInvalidObjError(preparedKey, "unsafe deletion is not allowed because the object is decodable from storage")
		}
		object := present.private()
		if err := preconditions.Check(preparedKey, object); err != nil {
			return err
		}
		if err := validateDeletion(ctx, object); err != nil {
			return err
		}
		gone, err := s.remove(present)
		if err != nil {
			return err
		}
		if gone != nil {
			return gone.copyInto(out)
		}
	}
}

// remove commits the deletion of expected if that still is the present entry, and returns nil without an error if not.
func (s *Store) remove(expected *entry) (*entry, error) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.unlockAndWake()
	if s.stopped {
		return nil, errStopped
	}
	if present, _ := s.current.Get(expected); present != expected {
		return nil, nil
	}
	return s.removeLocked(expected, s.revision+1, now)
}
