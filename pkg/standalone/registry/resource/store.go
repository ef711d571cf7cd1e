// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// REST serves a resource.
type REST struct {
	*genericregistry.Store
	shortNames, categories []string
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ResetFieldsStrategy  = &REST{}
)

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.shortNames }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.categories }

// NewStorage returns the storage of the resource and, if the kind has one, of
// its status, over what the getter provides. The keys are as in
// "pods" and "pods/status".
func NewStorage[T Object](getter generic.RESTOptionsGetter, kind Kind[T]) (map[string]rest.Storage, error) {
	resource := kind.Version.WithResource(kind.Resource).GroupResource()
	rules := strategy[T]{kind: &kind, rules: &kind.Rules}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return kind.New() },
		NewListFunc:               kind.NewList,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: kind.Version.WithResource(kind.Singular).GroupResource(),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		TableConvertor:            kind.Table,
	}
	if kind.Graceful != nil {
		store.DeleteStrategy = gracefulStrategy[T]{rules}
	}
	if kind.Rules.Reset != nil {
		store.ResetFieldsStrategy = rules
	}
	options := &generic.StoreOptions{RESTOptions: getter, AttrFunc: kind.Attrs}
	if kind.Adjust != nil {
		kind.Adjust(store, options)
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("storage of %s: %w", resource, err)
	}
	storage := map[string]rest.Storage{
		kind.Resource: &REST{Store: store, shortNames: kind.ShortNames, categories: kind.Categories},
	}
	if kind.Status != nil {
		statusRules := strategy[T]{kind: &kind, rules: kind.Status}
		status := *store
		status.UpdateStrategy = statusRules
		status.ResetFieldsStrategy = statusRules
		storage[kind.Resource+"/status"] = &StatusREST{store: &status}
	}
	return storage, nil
}

// StatusREST serves the status of a resource. It creates nothing.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
)

// New implements rest.Storage.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (*StatusREST) Destroy() {}

// Get implements rest.Getter.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *StatusREST) ConvertToTable(ctx context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, tableOptions)
}
