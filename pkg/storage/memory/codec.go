// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// codec turns objects into the bytes of the log and back, in two steps each: encode and seal, open and decode.
type codec struct {
	format      runtime.Codec
	transformer value.Transformer
	newFunc     func() runtime.Object
}

// newCodec returns nil if cfg asks for object mode.
func newCodec(cfg Form) *codec {
	if cfg.Codec == nil {
		return nil
	}
	c := &codec{format: cfg.Codec, transformer: cfg.Transformer, newFunc: cfg.NewFunc}
	if c.transformer == nil {
		c.transformer = identity.NewEncryptCheckTransformer()
	}
	c.transformer = corruptTransformer{c.transformer}
	return c
}

// encode returns the bytes of object without resourceVersion and selfLink, which are not stored. It does not write to it.
func (c *codec) encode(key string, object runtime.Object) ([]byte, error) {
	var bare runtime.Object
	if _, ok := object.(runtime.Unstructured); ok {
		bare = object.DeepCopyObject() // codecs of custom resources prune in place
	} else {
		bare = shallowCopy(object)
	}
	if err := versioner.PrepareObjectForStorage(bare); err != nil {
		return nil, fmt.Errorf("preparing key %q for storage: %w", key, err)
	}
	plain, err := runtime.Encode(c.format, bare)
	if err != nil {
		return nil, fmt.Errorf("encoding key %q: %w", key, err)
	}
	return plain, nil
}

// seal transforms encoded bytes into those that are stored. The key is the authenticated data, as it is in etcd: a value
// under another key is no longer readable.
func (c *codec) seal(ctx context.Context, key string, plain []byte) ([]byte, error) {
	data, err := c.transformer.TransformToStorage(ctx, plain, value.DefaultContext(key))
	if err != nil {
		return nil, storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", key, err))
	}
	return data, nil
}

// open undoes seal; stale tells that the value should be written anew, for instance because its encryption key is an old one.
func (c *codec) open(ctx context.Context, e *entry) (plain []byte, stale bool, err error) {
	plain, stale, err = c.transformer.TransformFromStorage(ctx, e.data, value.DefaultContext(e.key))
	if err != nil {
		return nil, false, storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", e.key, err))
	}
	return plain, stale, nil
}

// decode undoes encode, and stamps the object with revision.
func (c *codec) decode(key string, plain []byte, revision uint64) (runtime.Object, error) {
	into := c.newFunc()
	object, _, err := c.format.Decode(plain, nil, into)
	if err == nil && reflect.TypeOf(object) != reflect.TypeOf(into) {
		err = fmt.Errorf("got a %T, want a %T", object, into)
	}
	if err == nil {
		err = versioner.UpdateObject(object, revision)
	}
	if err != nil {
		return nil, storage.NewInternalError(fmt.Errorf("unable to decode key %q: %w", key, &corruptError{err}))
	}
	return object, nil
}
