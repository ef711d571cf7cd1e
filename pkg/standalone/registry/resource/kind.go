// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource makes the REST storage of one kind from a description of
// it: its names, its table, and the rules that its writes obey. What a
// strategy of k8s.io/apiserver has to say for every kind alike is said here
// once.
package resource

import (
	"context"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Object is an API object with metadata: a pointer to a type of k8s.io/api.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes one kind. T is the pointer to its Go type.
type Kind[T Object] struct {
	// Version and Kind are what clients see.
	Version schema.GroupVersion
	Kind    string
	// Resource and Singular are the names in URLs and in kubectl.
	Resource, Singular     string
	ShortNames, Categories []string
	Namespaced             bool

	New     func() T
	NewList func() runtime.Object
	Table   rest.TableConvertor
	// Attrs returns labels and selectable fields. nil: name and namespace.
	Attrs storage.AttrFunc

	// ValidateName is the rule for names. nil leaves the metadata to the
	// checks that every kind has.
	ValidateName apivalidation.ValidateNameFunc
	// AnyFinalizer lets finalizers have names without a domain. Custom resources
	// may, and Leases.
	AnyFinalizer bool
	// Rules are for writes to the resource itself.
	Rules Rules[T]
	// Status has the rules of the status subresource. nil: there is none.
	Status *Rules[T]

	// CreateOnUpdate lets a PUT create what is not there.
	CreateOnUpdate bool
	// NeedsRevision refuses an update that names no resourceVersion.
	NeedsRevision bool
	// GarbageCollection is what a DELETE without propagation policy does to
	// dependents. Empty: they are deleted.
	GarbageCollection rest.GarbageCollectionPolicy
	// Graceful decides whether a deletion is graceful, and sets the period.
	// nil: it never is.
	Graceful func(obj T, options *metav1.DeleteOptions) bool
	// Adjust changes the store before it is completed. It may be nil.
	Adjust func(store *genericregistry.Store, options *generic.StoreOptions)
}

// Rules say what a write may do. Each of them may be nil.
type Rules[T Object] struct {
	// Reset are the fields that the request cannot set, so that nobody owns
	// them after a server-side apply.
	Reset *fieldpath.Set
	// PrepareForCreate and PrepareForUpdate take back what the request cannot
	// set, before validation. They may write to obj, not to old.
	PrepareForCreate func(ctx context.Context, obj T)
	PrepareForUpdate func(ctx context.Context, obj, old T)
	// Validate and ValidateUpdate check all but the metadata. They must not
	// write to the objects.
	Validate       func(ctx context.Context, obj T) field.ErrorList
	ValidateUpdate func(ctx context.Context, obj, old T) field.ErrorList
	// Warnings are for the client. old is nil when obj is created.
	Warnings func(ctx context.Context, obj, old T) []string
}

// Fields returns the set of the given fields, each as a path of names.
func Fields(paths ...[]string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		parts := make([]any, 0, len(path))
		for _, name := range path {
			parts = append(parts, name)
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return set
}

// StatusField and SpecField are what a write to the resource, and to its
// status, resets in most kinds.
func StatusField() *fieldpath.Set { return Fields([]string{"status"}) }

// SpecField is the counterpart of StatusField.
func SpecField() *fieldpath.Set { return Fields([]string{"spec"}) }
