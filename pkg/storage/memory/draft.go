// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/grid-apiserver/grid-apiserver/internal/mutant"
)

// draft is an object on its way into the log: a copy in object mode, encoded in codec mode.
type draft struct {
	key    string
	object runtime.Object
	plain  []byte
}

// draft copies or encodes object, which is not written to.
func (s *Store) draft(key string, object runtime.Object) (draft, error) {
	if err := s.checkObject(key, object); err != nil {
		return draft{}, err
	}
	if s.codec != nil {
		plain, err := s.codec.encode(key, object)
		return draft{key: key, plain: plain}, err
	}
	prepared := object.DeepCopyObject()
	if mutant.AliasingWrite {
		prepared, _ = atRevision(object, 0)
	}
	if err := versioner.PrepareObjectForStorage(prepared); err != nil {
		return draft{}, fmt.Errorf("preparing key %q for storage: %w", key, err)
	}
	return draft{key: key, object: prepared}, nil
}

// entry returns the entry that d becomes; committing it gives it a revision.
func (s *Store) entry(ctx context.Context, d draft) (*entry, error) {
	if s.codec == nil {
		return &entry{key: d.key, object: d.object}, nil
	}
	data, err := s.codec.seal(ctx, d.key, d.plain)
	return &entry{key: d.key, data: data}, err
}

// adopt returns an entry of object, which was checked, and in object mode belongs to the store from then on.
func (s *Store) adopt(key string, object runtime.Object) (*entry, error) {
	d := draft{key: key, object: object}
	if s.codec != nil {
		var err error
		if d.plain, err = s.codec.encode(key, object); err != nil {
			return nil, err
		}
	}
	return s.entry(context.Background(), d)
}

// unchanged tells whether d is what is stored already, so that it need not be written: in codec mode the same bytes, in
// object mode the same content. Nil and empty are different there, as they are to clients that read JSON; and the
// resourceVersion of present is written into d, which committing d overwrites.
func (s *Store) unchanged(d draft, present state) (bool, error) {
	if s.codec != nil {
		return !present.stale && bytes.Equal(d.plain, present.plain), nil
	}
	if err := versioner.UpdateObject(d.object, present.entry.revision); err != nil {
		return false, err
	}
	return apiequality.Semantic.DeepEqualWithNilDifferentFromEmpty(d.object, present.entry.object), nil
}
