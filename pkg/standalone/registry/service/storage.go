// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/services"
)

// NewStorage returns the storage of "services" and "services/status". The pools
// begin empty and live as long as the storage does, so the store of the getter
// must be empty as well.
func NewStorage(getter generic.RESTOptionsGetter, cfg Config) (map[string]rest.Storage, error) {
	p, err := newPools(cfg)
	if err != nil {
		return nil, fmt.Errorf("storage of services: %w", err)
	}
	service, status, err := newREST(getter, p)
	if err != nil {
		return nil, err
	}
	return map[string]rest.Storage{"services": service, "services/status": status}, nil
}

func newREST(getter generic.RESTOptionsGetter, p *pools) (*REST, *StatusREST, error) {
	store := &genericregistry.Store{
		NewFunc:     func() runtime.Object { return &corev1.Service{} },
		NewListFunc: func() runtime.Object { return &corev1.ServiceList{} },
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: services.GetAttrs}
		},
		DefaultQualifiedResource:  corev1.Resource("services"),
		SingularQualifiedResource: corev1.Resource("service"),
		ReturnDeletedObject:       true,
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            services.NewTable(clock.RealClock{}),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: services.GetAttrs}); err != nil {
		return nil, nil, fmt.Errorf("storage of services: %w", err)
	}
	a := &allocator{pools: p}
	// Also a write to status can take the last finalizer away.
	store.AfterDelete = a.afterDelete
	statusStore := *store
	statusStore.UpdateStrategy = statusStrategy
	statusStore.ResetFieldsStrategy = statusStrategy
	store.BeginCreate = a.beginCreate
	store.BeginUpdate = a.beginUpdate
	return &REST{Store: store}, &StatusREST{store: &statusStore}, nil
}

// REST is the storage of services.
type REST struct {
	*genericregistry.Store
}

var (
	_ rest.StandardStorage        = &REST{}
	_ rest.ShortNamesProvider     = &REST{}
	_ rest.CategoriesProvider     = &REST{}
	_ rest.StorageVersionProvider = &REST{}
	_ rest.ResetFieldsStrategy    = &REST{}
)

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"svc"} }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return []string{"all"} }

// Update implements rest.Updater. It settles what the hooks have reserved: the
// Store ends them before it writes, and again for each round of a write that
// meets another one.
func (r *REST) Update(
	ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	ctx, update := withAttempt(ctx)
	written := false
	defer func() { update.settle(written) }()
	obj, created, err := r.Store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	written = err == nil
	return obj, created, err
}

// StatusREST is the storage of services/status.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New implements rest.Storage.
func (r *StatusREST) New() runtime.Object { return &corev1.Service{} }

// Destroy implements rest.Storage. The store belongs to REST.
func (r *StatusREST) Destroy() {}

// Get implements rest.Getter, for patches.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater. It never creates.
func (r *StatusREST) Update(
	ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// ConvertToTable implements rest.TableConvertor.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
