// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bareGetter puts the REST storage straight over a store in codec mode.
type bareGetter struct {
	codec runtime.Codec
	store *memory.Store
}

func (g bareGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:  storagebackend.NewDefaultConfig("", g.codec).ForResource(resource),
		ResourcePrefix: "/namespaces",
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
			storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return g.store, func() {}, nil
		},
	}, nil
}

// fixture is the storage of namespaces with the calls that the tests make.
type fixture struct {
	*testing.T
	ctx      context.Context
	rest     *REST
	status   *statusREST
	finalize *subresource
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddTypeDefaultingFunc(&corev1.Namespace{}, func(obj any) { SetDefaults(obj.(*corev1.Namespace)) })
	codecs := serializer.NewCodecFactory(s)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf serializer")
	}
	codec := codecs.CodecForVersions(info.Serializer, info.Serializer, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
	store, err := memory.New(memory.Config{
		GroupResource:  corev1.Resource("namespaces"),
		ResourcePrefix: "/namespaces",
		NewFunc:        func() runtime.Object { return &corev1.Namespace{} },
		Codec:          codec,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	storages, err := NewStorage(bareGetter{codec: codec, store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, ctx: request.WithNamespace(t.Context(), "")}
	f.rest = storages["namespaces"].(*REST)
	f.status = storages["namespaces/status"].(*statusREST)
	f.finalize = storages["namespaces/finalize"].(*subresource)
	t.Cleanup(f.rest.Destroy)
	return f
}

func (f *fixture) create(namespace *corev1.Namespace) *corev1.Namespace {
	f.Helper()
	created, err := f.rest.Create(f.ctx, namespace, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return created.(*corev1.Namespace)
}

func (f *fixture) get(name string) (*corev1.Namespace, error) {
	obj, err := f.rest.Get(f.ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

func (f *fixture) update(storage rest.Updater, name string, change func(*corev1.Namespace)) (*corev1.Namespace, error) {
	f.Helper()
	namespace, err := f.get(name)
	if err != nil {
		f.Fatal(err)
	}
	change(namespace)
	obj, _, err := storage.Update(f.ctx, name, rest.DefaultUpdatedObjectInfo(namespace), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

func (f *fixture) delete(name string, options *metav1.DeleteOptions) (*corev1.Namespace, bool, error) {
	obj, gone, err := f.rest.Delete(f.ctx, name, rest.ValidateAllObjectFunc, options)
	if err != nil {
		return nil, gone, err
	}
	return obj.(*corev1.Namespace), gone, nil
}

func named(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
