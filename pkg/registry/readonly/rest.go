// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readonly is REST storage that can be read and watched only.
//
// It stands around a genericregistry.Store without embedding it, so that the
// handlers of k8s.io/apiserver find no method for a write: every write verb is
// answered with 405 and cannot reach the store by any path.
package readonly

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// Resource describes what is served. All fields but ShortNames and Categories
// are required.
type Resource struct {
	// GroupResource is the plural name with its API group.
	GroupResource schema.GroupResource
	// Singular is the name that kubectl accepts for one object.
	Singular string
	// Namespaced says whether objects live in namespaces.
	Namespaced bool
	// NewFunc and NewListFunc return empty objects.
	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object
	// Attrs returns the labels and the selectable fields of an object.
	Attrs storage.AttrFunc
	// Table renders objects for kubectl.
	Table rest.TableConvertor
	// ShortNames are abbreviations such as "svc"; Categories groups such as "all".
	ShortNames []string
	Categories []string
}

// REST serves get, list and watch of one resource. It is safe for concurrent
// use.
type REST struct {
	store      *genericregistry.Store
	shortNames []string
	categories []string
}

var (
	_ rest.Storage              = &REST{}
	_ rest.StorageWithReadiness = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.TableConvertor       = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
)

// NewREST returns storage for the resource. It takes the storage layer from
// the getter, starting whatever runs in it; Destroy stops that again.
func NewREST(resource Resource, getter generic.RESTOptionsGetter) (*REST, error) {
	never := strategy{resource: resource.GroupResource, namespaced: resource.Namespaced}
	store := &genericregistry.Store{
		NewFunc:                   resource.NewFunc,
		NewListFunc:               resource.NewListFunc,
		DefaultQualifiedResource:  resource.GroupResource,
		SingularQualifiedResource: schema.GroupResource{Group: resource.GroupResource.Group, Resource: resource.Singular},
		CreateStrategy:            never,
		DeleteStrategy:            never,
		TableConvertor:            resource.Table,
	}
	options := &generic.StoreOptions{RESTOptions: getter, AttrFunc: resource.Attrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("completing the storage of %s: %w", resource.GroupResource, err)
	}
	return &REST{store: store, shortNames: resource.ShortNames, categories: resource.Categories}, nil
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.store.New() }

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return r.store.NewList() }

// Destroy stops what NewREST started. It may be called more than once.
func (r *REST) Destroy() { r.store.Destroy() }

// ReadinessCheck returns an error while the watch cache under this storage has
// not been filled. Lists are answered before that, from below the cache, so
// nothing else shows a cache that never gets there.
func (r *REST) ReadinessCheck() error { return r.store.ReadinessCheck() }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return r.store.NamespaceScoped() }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.store.GetSingularName() }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.shortNames }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.categories }

// ConvertToTable implements rest.TableConvertor.
func (r *REST) ConvertToTable(ctx context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, tableOptions)
}

// Get returns one object, or a NotFound error.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if options == nil {
		options = &metav1.GetOptions{}
	}
	return r.store.Get(ctx, name, options)
}

// List returns the objects that match the options.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.store.List(ctx, options)
}

// Watch streams changes. A resourceVersion that is too old or from the future
// is answered with an ERROR event, see futureRevision.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	if options == nil {
		options = &metainternalversion.ListOptions{}
	}
	tooLarge, err := r.futureRevision(ctx, options)
	if err != nil {
		return nil, err
	}
	if tooLarge != nil {
		return newErrorWatch(tooLarge), nil
	}
	return r.store.Watch(ctx, options)
}
