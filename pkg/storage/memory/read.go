// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// object returns the object of e. In object mode it is that of the log, and must not be written to; in codec mode it was
// decoded for the caller. What needs an object of its own in either mode passes it through own.
func (s *Store) object(ctx context.Context, e *entry) (runtime.Object, error) {
	if s.codec == nil {
		return e.object, nil
	}
	plain, _, err := s.codec.open(ctx, e)
	if err != nil {
		return nil, err
	}
	return s.codec.decode(e.key, plain, e.revision)
}

// own returns what object returned as an object that the caller may write to.
func (s *Store) own(object runtime.Object) runtime.Object {
	if s.codec == nil {
		return object.DeepCopyObject()
	}
	return object
}

// restamp returns what object returned with another resourceVersion.
func (s *Store) restamp(object runtime.Object, revision uint64) (runtime.Object, error) {
	if s.codec == nil {
		return atRevision(object, revision)
	}
	return object, versioner.UpdateObject(object, revision)
}

// readInto sets *out to an object of its own.
func (s *Store) readInto(ctx context.Context, e *entry, out runtime.Object) error {
	object, err := s.object(ctx, e)
	if err != nil {
		return err
	}
	return assign(e.key, out, s.own(object))
}

// result ends a write: it sets *out to the object of e, of which the writer has the encoded form already. It does not
// transform, so a transformer that fails after the commit does not make it look like a failure.
func (s *Store) result(e *entry, plain []byte, out runtime.Object) error {
	object := e.object
	if s.codec != nil {
		var err error
		if object, err = s.codec.decode(e.key, plain, e.revision); err != nil {
			return err
		}
	}
	return assign(e.key, out, s.own(object))
}

// state is a present entry as an update or a deletion begins with it.
type state struct {
	entry  *entry
	object runtime.Object // the caller's own
	// plain is the encoded form of object, and stale whether the transformer wants it written anew; codec mode only.
	plain []byte
	stale bool
}

// state reads e. A suggestion that is known to be the same version spares decoding, and with it the webhook that may
// convert the object; any other is ignored, because here the present entry is at hand. So nobody decides on stale data.
func (s *Store) state(ctx context.Context, e *entry, suggestion runtime.Object) (state, error) {
	if s.codec == nil {
		return state{entry: e, object: e.object.DeepCopyObject()}, nil
	}
	out := state{entry: e}
	var err error
	if out.plain, out.stale, err = s.codec.open(ctx, e); err != nil {
		return state{}, err
	}
	if suggestion != nil && s.isVersion(suggestion, e) {
		out.object = suggestion
		return out, nil
	}
	out.object, err = s.codec.decode(e.key, out.plain, e.revision)
	return out, err
}

// isVersion tells whether object, which was read from this store, must be the version e of its key.
func (l *log) isVersion(object runtime.Object, e *entry) bool {
	revision, err := versioner.ObjectResourceVersion(object)
	if err != nil || revision != e.revision {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return revision > l.ambiguous
}
