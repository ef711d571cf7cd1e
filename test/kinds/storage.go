// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// getter gives each resource a store of its own, without a watch cache.
type getter struct {
	t         testing.TB
	codecs    serializer.CodecFactory
	resources map[schema.GroupResource]kind
}

func (g *getter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	kind, ok := g.resources[resource]
	if !ok {
		return generic.RESTOptions{}, fmt.Errorf("unknown resource %s", resource)
	}
	info, _ := runtime.SerializerInfoForMediaType(g.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	codec := g.codecs.CodecForVersions(info.Serializer, info.Serializer, kind.version, kind.version)
	return generic.RESTOptions{
		StorageConfig:           storagebackend.NewDefaultConfig("", codec).ForResource(resource),
		ResourcePrefix:          prefix(resource),
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
			storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			store, err := memory.New(memory.Config{
				GroupResource: resource, ResourcePrefix: prefix(resource), NewFunc: kind.object.DeepCopyObject, Codec: codec,
			})
			if err != nil {
				return nil, nil, err
			}
			g.t.Cleanup(store.Stop)
			return store, func() {}, nil
		},
	}, nil
}

func newStorage(getter generic.RESTOptionsGetter, typer runtime.ObjectTyper, resource schema.GroupResource, kind kind) (rest.Storage, error) {
	strategy := strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, namespaced: kind.namespaced}
	store := &genericregistry.Store{
		NewFunc: kind.object.DeepCopyObject, NewListFunc: kind.list.DeepCopyObject,
		DefaultQualifiedResource: resource, SingularQualifiedResource: resource,
		CreateStrategy: strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		TableConvertor: rest.NewDefaultTableConvertor(resource),
	}
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter})
}

// strategy keeps objects as they come.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
}

var _ rest.RESTGracefulDeleteStrategy = strategy{}

func (s strategy) NamespaceScoped() bool                                   { return s.namespaced }
func (strategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool             { return true }
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (strategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) Canonicalize(runtime.Object)                                      {}

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return apivalidation.ValidateObjectMetaAccessor(accessor, s.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	before, err := meta.Accessor(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return apivalidation.ValidateObjectMetaAccessorUpdate(accessor, before, field.NewPath("metadata"))
}

// CheckGracefulDelete has the rule for pods: those on a node get their time.
func (strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	period := int64(0)
	switch {
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" {
		period = 0
	}
	options.GracePeriodSeconds = &period
	return true
}
