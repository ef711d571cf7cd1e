// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace stores Namespaces of core/v1 for the standalone server:
// the resource itself, its status and its finalization.
//
// A namespace goes in three steps. The first DELETE marks it: a
// deletionTimestamp and the phase Terminating, after which admission refuses
// new content. The namespace controller deletes the content and takes its
// finalizer out of spec.finalizers through the finalize subresource. The write
// that leaves neither spec.finalizers nor metadata.finalizers removes the
// object.
package namespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
)

// NewStorage returns the storage of "namespaces", "namespaces/status" and
// "namespaces/finalize" over what the getter provides.
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:               func() runtime.Object { return &corev1.NamespaceList{} },
		DefaultQualifiedResource:  corev1.Resource("namespaces"),
		SingularQualifiedResource: corev1.Resource("namespace"),
		CreateStrategy:            specStrategy{},
		UpdateStrategy:            specStrategy{},
		DeleteStrategy:            specStrategy{},
		ResetFieldsStrategy:       specStrategy{},
		ShouldDeleteDuringUpdate:  shouldDeleteDuringUpdate,
		ReturnDeletedObject:       true,
		TableConvertor:            namespaces.NewTable(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: GetAttrs}); err != nil {
		return nil, fmt.Errorf("storage of namespaces: %w", err)
	}
	status := *store
	status.UpdateStrategy = statusStrategy{}
	status.ResetFieldsStrategy = statusStrategy{}
	finalize := *store
	finalize.UpdateStrategy = finalizeStrategy{}
	finalize.ResetFieldsStrategy = finalizeStrategy{}
	return map[string]rest.Storage{
		"namespaces":          &REST{store: store},
		"namespaces/status":   &statusREST{subresource{store: &status}},
		"namespaces/finalize": &subresource{store: &finalize},
	}, nil
}

// shouldDeleteDuringUpdate decides whether an update is the last one: nothing
// in spec.finalizers, and what holds for every object.
func shouldDeleteDuringUpdate(ctx context.Context, key string, obj, existing runtime.Object) bool {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		utilruntime.HandleErrorWithContext(ctx, nil, "Unexpected type among the namespaces", "type", fmt.Sprintf("%T", obj))
		return false
	}
	return len(namespace.Spec.Finalizers) == 0 && genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}

// subresource updates a part of a namespace. It creates nothing, and it cannot
// be read: as on kube-apiserver, a GET of "finalize" is refused.
type subresource struct {
	store *genericregistry.Store
}

var (
	_ rest.Updater             = &subresource{}
	_ rest.ResetFieldsStrategy = &subresource{}
)

// New implements rest.Storage.
func (s *subresource) New() runtime.Object { return s.store.New() }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (s *subresource) Destroy() {}

// Update implements rest.Updater.
func (s *subresource) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *subresource) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// statusREST is a subresource that can be read, so that it can be patched.
type statusREST struct {
	subresource
}

var (
	_ rest.Patcher        = &statusREST{}
	_ rest.TableConvertor = &statusREST{}
)

// Get implements rest.Getter.
func (s *statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// ConvertToTable implements rest.TableConvertor.
func (s *statusREST) ConvertToTable(ctx context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, obj, tableOptions)
}
