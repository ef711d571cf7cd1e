// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
)

// switchTransformer is a transformer that tests exchange while the store is in use. It stands where Store puts the
// configured one, so that a test decides itself whether an error means a corrupt object.
type switchTransformer struct {
	base *storagetesting.PrefixTransformer
	now  atomic.Pointer[value.Transformer]
}

// switchable puts a switchTransformer into store, which newCodecStore made and nobody uses yet.
func switchable(store *Store) *switchTransformer {
	configured := store.codec.transformer
	s := &switchTransformer{base: configured.(corruptTransformer).Transformer.(*storagetesting.PrefixTransformer)}
	s.now.Store(&configured)
	store.codec.transformer = s
	return s
}

// set exchanges the transformer, and returns what undoes it.
func (s *switchTransformer) set(next value.Transformer) func() {
	previous := s.now.Swap(&next)
	return func() { s.now.Store(previous) }
}

func (s *switchTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	return (*s.now.Load()).TransformFromStorage(ctx, data, dataCtx)
}

func (s *switchTransformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return (*s.now.Load()).TransformToStorage(ctx, data, dataCtx)
}

// transforming is a store, or a cacher over it, whose transformer the conformance cases take hold of.
type transforming struct {
	storage.Interface
	*switchTransformer
}

var (
	_ storagetesting.InterfaceWithPrefixTransformer   = transforming{}
	_ storagetesting.InterfaceWithTransformerOverride = transforming{}
)

func (s transforming) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	return s.set(modify(storagetesting.NewPrefixTransformer([]byte(storedPrefix), false)))
}

func (s transforming) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return s.set(modify(*s.now.Load()))
}

// untransforming lets a case that takes hold of a transformer for a part of what it checks run in object mode, which has
// none. Only what a stale transformer means is imitated, which is that an update writes although nothing changed.
type untransforming struct {
	storage.Interface
	below *Store
	stale bool
}

var _ storagetesting.InterfaceWithPrefixTransformer = (*untransforming)(nil)

func (s *untransforming) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	_, s.stale, _ = modify(storagetesting.NewPrefixTransformer(nil, false)).TransformFromStorage(context.Background(), nil, value.DefaultContext{})
	return func() { s.stale = false }
}

func (s *untransforming) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, suggestion runtime.Object) error {
	if found, _ := s.below.lookup(key); s.stale && found != nil {
		if _, err := s.below.Apply(Change{Key: key, Object: s.below.own(found.object)}); err != nil {
			return err
		}
	}
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, suggestion)
}

var errInjected = errors.New("injected error")

// failingTransformer cannot read.
type failingTransformer struct{ value.Transformer }

func (failingTransformer) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, errInjected
}

// failingCodec fails when it is told to.
type failingCodec struct {
	runtime.Codec
	decode, encode atomic.Bool
}

func (c *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.decode.Load() {
		return nil, nil, errInjected
	}
	return c.Codec.Decode(data, defaults, into)
}

func (c *failingCodec) Encode(object runtime.Object, w io.Writer) error {
	if c.encode.Load() {
		return errInjected
	}
	return c.Codec.Encode(object, w)
}
