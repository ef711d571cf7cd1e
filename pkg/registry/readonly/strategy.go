// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// strategy is what genericregistry.Store requires to know the scope of its
// resource. No write reaches the store; if one ever did, it would be refused.
type strategy struct {
	resource   schema.GroupResource
	namespaced bool
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool { return s.namespaced }

func (s strategy) Validate(context.Context, runtime.Object) field.ErrorList {
	return field.ErrorList{field.Forbidden(field.NewPath("metadata"), s.resource.String()+" are read-only here")}
}

func (s strategy) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return nil, false, apierrors.NewMethodNotSupported(s.resource, "write")
}

func (s strategy) Recognizes(schema.GroupVersionKind) bool                   { return false }
func (s strategy) GenerateName(base string) string                           { return base }
func (s strategy) PrepareForCreate(context.Context, runtime.Object)          {}
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (s strategy) Canonicalize(runtime.Object)                               {}
