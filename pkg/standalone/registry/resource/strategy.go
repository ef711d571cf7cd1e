// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"cmp"
	"context"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy applies rules, those of the resource or of its status, to writes of
// a kind.
type strategy[T Object] struct {
	kind  *Kind[T]
	rules *Rules[T]
}

var (
	_ rest.RESTCreateStrategy              = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTUpdateStrategy              = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTDeleteStrategy              = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.GarbageCollectionDeleteStrategy = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.ResetFieldsStrategy             = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTGracefulDeleteStrategy      = gracefulStrategy[*metav1.PartialObjectMetadata]{}
)

// ObjectKinds implements runtime.ObjectTyper. A strategy sees objects of its
// kind only, so that it needs no scheme.
func (s strategy[T]) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := obj.(T); !ok {
		return nil, false, fmt.Errorf("not a %s: %T", s.kind.Kind, obj)
	}
	return []schema.GroupVersionKind{s.kind.Version.WithKind(s.kind.Kind)}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (s strategy[T]) Recognizes(kind schema.GroupVersionKind) bool {
	return kind == s.kind.Version.WithKind(s.kind.Kind)
}

func (strategy[T]) GenerateName(base string) string {
	return names.SimpleNameGenerator.GenerateName(base)
}

func (s strategy[T]) NamespaceScoped() bool                         { return s.kind.Namespaced }
func (s strategy[T]) AllowCreateOnUpdate(context.Context) bool      { return s.kind.CreateOnUpdate }
func (s strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return !s.kind.NeedsRevision }
func (strategy[T]) Canonicalize(runtime.Object)                     {}

func (s strategy[T]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return cmp.Or(s.kind.GarbageCollection, rest.DeleteDependents)
}

func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.rules.Reset == nil {
		return nil
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(s.kind.Version.String()): s.rules.Reset}
}

func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if s.rules.PrepareForCreate != nil {
		s.rules.PrepareForCreate(ctx, obj.(T))
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if s.rules.PrepareForUpdate != nil {
		s.rules.PrepareForUpdate(ctx, obj.(T), old.(T))
	}
}

func (s strategy[T]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if s.kind.ValidateName != nil {
		errs = apivalidation.ValidateObjectMetaAccessor(obj.(T), s.kind.Namespaced, s.kind.ValidateName, field.NewPath("metadata"))
		errs = append(errs, s.validateFinalizers(obj.(T))...)
	}
	if s.rules.Validate != nil {
		errs = append(errs, s.rules.Validate(ctx, obj.(T))...)
	}
	return errs
}

func (s strategy[T]) validateFinalizers(obj T) field.ErrorList {
	if s.kind.AnyFinalizer {
		return nil
	}
	return FinalizerNames(field.NewPath("metadata"), obj.GetFinalizers())
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if s.kind.ValidateName != nil {
		errs = apivalidation.ValidateObjectMetaAccessorUpdate(obj.(T), old.(T), field.NewPath("metadata"))
		errs = append(errs, s.validateFinalizers(obj.(T))...)
	}
	if s.rules.ValidateUpdate != nil {
		errs = append(errs, s.rules.ValidateUpdate(ctx, obj.(T), old.(T))...)
	}
	return errs
}

func (s strategy[T]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.rules.Warnings == nil {
		return nil
	}
	var none T
	return s.rules.Warnings(ctx, obj.(T), none)
}

func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if s.rules.Warnings == nil {
		return nil
	}
	return s.rules.Warnings(ctx, obj.(T), old.(T))
}

// gracefulStrategy is for kinds that may be deleted gracefully. It is a type
// of its own because having the method means something to the store.
type gracefulStrategy[T Object] struct{ strategy[T] }

func (s gracefulStrategy[T]) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	return options != nil && s.kind.Graceful(obj.(T), options)
}
