// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// TypeConverter returns the converter that managedFields are computed with. The
// stock one is made of all types at once; this one makes one of each kind when
// an object of it is first written.
func (m *Models) TypeConverter() managedfields.TypeConverter { return &typeConverter{m} }

type typeConverter struct{ models *Models }

var _ managedfields.TypeConverter = &typeConverter{}

// ObjectToTyped implements managedfields.TypeConverter.
func (c *typeConverter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	converter, err := c.models.converter(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(object, options...)
}

// TypedToObject implements managedfields.TypeConverter. It does not depend on the type.
func (*typeConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

// converters holds one converter for each kind that was asked for.
type converters struct {
	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error)
}

func (m *Models) converter(kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	m.converters.mu.Lock()
	get, ok := m.converters.byKind[kind]
	if !ok && m.scheme.Recognizes(kind) {
		get = sync.OnceValues(func() (managedfields.TypeConverter, error) { return m.newConverter(kind) })
		if m.converters.byKind == nil {
			m.converters.byKind = map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error){}
		}
		m.converters.byKind[kind] = get
	}
	m.converters.mu.Unlock()
	if get == nil {
		// The error that the stock converter gives for such a kind.
		return managedfields.NewTypeConverter(nil, false)
	}
	return get()
}

func (m *Models) newConverter(kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	sample, err := m.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", kind, err)
	}
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(m.V3Config(), openapiutil.GetCanonicalTypeName(sample))
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", kind, err)
	}
	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", kind, err)
	}
	return converter, nil
}
