// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/value"
)

// Form says as what the objects of a log in codec mode are read and written. Its fields are those of Config.
type Form struct {
	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object
	Codec       runtime.Codec
	Transformer value.Transformer
}

// form is a Form that was checked.
type form struct {
	newFunc    func() runtime.Object
	objectType reflect.Type
	codec      *codec // nil: object mode
}

func newForm(cfg Form) (form, error) {
	switch {
	case cfg.NewFunc == nil:
		return form{}, errors.New("NewFunc is required")
	case cfg.Transformer != nil && cfg.Codec == nil:
		return form{}, errors.New("a Transformer needs a Codec")
	}
	objectType := reflect.TypeOf(cfg.NewFunc())
	if objectType == nil || objectType.Kind() != reflect.Pointer {
		return form{}, fmt.Errorf("NewFunc must return a pointer, got %v", objectType)
	}
	if cfg.NewListFunc != nil {
		if err := checkListType(objectType, cfg.NewListFunc()); err != nil {
			return form{}, err
		}
	}
	return form{newFunc: cfg.NewFunc, objectType: objectType, codec: newCodec(cfg)}, nil
}

// As returns another Store over the log of s, in codec mode both: what is written through one is read and watched through
// the other, under the same revisions. So several versions of a custom resource, each with a decoder of its own, share
// what is stored. Every codec must decode what any of them, and those of earlier calls, encoded. Only a Stop ends the log;
// a Store that is no longer used needs none.
func (s *Store) As(cfg Form) (*Store, error) {
	if s.codec == nil || cfg.Codec == nil {
		return nil, fmt.Errorf("memory store of %s: objects that are not encoded have one form", s.groupResource)
	}
	f, err := newForm(cfg)
	if err != nil {
		return nil, fmt.Errorf("memory store of %s: %w", s.groupResource, err)
	}
	return &Store{log: s.log, form: f}, nil
}
