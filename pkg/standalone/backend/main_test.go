// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
)

func TestMain(m *testing.M) {
	// The cacher's wait for a revision leaves a goroutine that ends after three seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

var nodes = corev1.Resource("nodes")

func newBackend(t *testing.T, opts backend.Options) *backend.Backend {
	t.Helper()
	if opts.Codec == nil {
		opts.Codec = codecFor(t, runtime.ContentTypeProtobuf)
	}
	b := backend.New(opts)
	t.Cleanup(b.Stop)
	return b
}

func codecFor(t *testing.T, mediaType string) backend.CodecFunc {
	t.Helper()
	s, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := scheme.NewCodecs(s)
	return func(gr schema.GroupResource) (runtime.Codec, error) {
		return backend.NewCodec(codecs, mediaType, s.PrioritizedVersionsForGroup(gr.Group)[0])
	}
}

// build builds the storage of nodes.
func build(t *testing.T, getter generic.RESTOptionsGetter) (storage.Interface, factory.DestroyFunc) {
	t.Helper()
	built, destroy, err := tryBuild(getter, nodes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	waitReady(t, built.ReadinessCheck)
	return built, destroy
}

// buildCustom builds the storage of nodes as if a definition made them. The codec
// is that of the built-in ones, so that both have the same objects.
func buildCustom(t *testing.T, b *backend.Backend) storage.Interface {
	t.Helper()
	custom, err := b.CustomResources().GetRESTOptions(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := b.GetRESTOptions(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	custom.StorageConfig.Codec = usual.StorageConfig.Codec
	built, destroy, err := buildFrom(custom)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	waitReady(t, built.ReadinessCheck)
	return built
}

func tryBuild(getter generic.RESTOptionsGetter, resource schema.GroupResource) (storage.Interface, factory.DestroyFunc, error) {
	options, err := getter.GetRESTOptions(resource, nil)
	if err != nil {
		return nil, nil, err
	}
	return buildFrom(options)
}

func buildFrom(options generic.RESTOptions) (storage.Interface, factory.DestroyFunc, error) {
	return options.Decorator(options.StorageConfig, options.ResourcePrefix,
		func(object runtime.Object) (string, error) {
			return options.ResourcePrefix + "/" + object.(*corev1.Node).Name, nil
		},
		func() runtime.Object { return &corev1.Node{} },
		func() runtime.Object { return &corev1.NodeList{} },
		func(object runtime.Object) (labels.Set, fields.Set, error) {
			return object.(*corev1.Node).Labels, fields.Set{}, nil
		}, nil, nil)
}

func waitReady(t *testing.T, check func() error) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return check() == nil, nil
	}); err != nil {
		t.Fatalf("not ready: %v", check())
	}
}

func create(t *testing.T, in storage.Interface, name string) *corev1.Node {
	t.Helper()
	out := &corev1.Node{}
	if err := in.Create(t.Context(), "/nodes/"+name, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func remove(t *testing.T, in storage.Interface, name string) {
	t.Helper()
	err := in.Delete(t.Context(), "/nodes/"+name, &corev1.Node{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, in storage.Interface) *corev1.NodeList {
	t.Helper()
	out := &corev1.NodeList{}
	if err := in.GetList(t.Context(), "/nodes/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func watchFrom(t *testing.T, in storage.Interface, revision string) watch.Interface {
	t.Helper()
	w, err := in.Watch(t.Context(), "/nodes/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		if shared, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = shared.GetObject()
		}
		return event
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return watch.Event{}
}
