// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

var (
	widgets       = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	storedVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	servedVersion = schema.GroupVersion{Group: "example.com", Version: "v2"}
	versionFields = map[schema.GroupVersion]string{storedVersion: "size", servedVersion: "capacity"}
)

// widgetConverter converts the resource as a webhook of a CustomResourceDefinition would: the versions name a field
// differently.
type widgetConverter struct{}

func (c widgetConverter) Convert(in, out, _ any) error {
	converted, err := c.ConvertToVersion(in.(runtime.Object), out.(runtime.Object).GetObjectKind().GroupVersionKind().GroupVersion())
	if err != nil {
		return err
	}
	out.(*unstructured.Unstructured).Object = converted.(*unstructured.Unstructured).Object
	return nil
}

func (widgetConverter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	target, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok {
		return nil, fmt.Errorf("cannot convert %s", from)
	}
	out := in.DeepCopyObject().(*unstructured.Unstructured)
	out.SetGroupVersionKind(target)
	spec, _ := out.Object["spec"].(map[string]any)
	if value, ok := spec[versionFields[from.GroupVersion()]]; ok {
		delete(spec, versionFields[from.GroupVersion()])
		spec[versionFields[target.GroupVersion()]] = value
	}
	return out, nil
}

func (widgetConverter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// newWidgetStore returns a store of a custom resource that is served in another version than it is stored in.
func newWidgetStore(t *testing.T) *Store {
	t.Helper()
	json := unstructured.UnstructuredJSONScheme
	return newTestStore(t, func(cfg *Config) {
		cfg.GroupResource = widgets
		cfg.ResourcePrefix = "/example.com/widgets/"
		cfg.NewFunc = func() runtime.Object {
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(servedVersion.WithKind("Widget"))
			return out
		}
		cfg.NewListFunc = func() runtime.Object { return &unstructured.UnstructuredList{} }
		cfg.Codec = versioning.NewCodec(json, json, widgetConverter{}, unstructuredscheme.NewUnstructuredCreator(),
			unstructuredscheme.NewUnstructuredObjectTyper(), nil, storedVersion, servedVersion, "widgets")
	})
}

func widget(name string, capacity int64) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"capacity": capacity}}}
	out.SetGroupVersionKind(servedVersion.WithKind("Widget"))
	out.SetNamespace("ns")
	out.SetName(name)
	return out
}

func TestCustomResourcesAreConverted(t *testing.T) {
	const key = "/example.com/widgets/ns/a"
	store := newWidgetStore(t)
	in, out := widget("a", 1), &unstructured.Unstructured{}
	if err := store.Create(t.Context(), key, in, out, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(widget("a", 1), in); diff != "" {
		t.Errorf("Create wrote to its input (-want +got):\n%s", diff)
	}
	created := store.Revision()
	want := func(capacity int64) *unstructured.Unstructured {
		object := widget("a", capacity)
		object.SetResourceVersion(fmt.Sprint(store.Revision()))
		return object
	}
	if diff := cmp.Diff(want(1), out); diff != "" {
		t.Errorf("Create (-want +got):\n%s", diff)
	}
	data := storedData(t, store, key)
	if !bytes.Contains(data, []byte(`"apiVersion":"example.com/v1"`)) || !bytes.Contains(data, []byte(`"size":1`)) ||
		bytes.Contains(data, []byte("resourceVersion")) {
		t.Errorf("stored %s, want it in v1, without a resourceVersion", data)
	}

	grow := storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
		return object, unstructured.SetNestedField(object.(*unstructured.Unstructured).Object, int64(2), "spec", "capacity")
	})
	if err := store.GuaranteedUpdate(t.Context(), key, out, false, nil, grow, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want(2), out); diff != "" {
		t.Errorf("GuaranteedUpdate (-want +got):\n%s", diff)
	}
	got := &unstructured.Unstructured{}
	if err := store.Get(t.Context(), key, storage.GetOptions{}, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want(2), got); diff != "" {
		t.Errorf("Get (-want +got):\n%s", diff)
	}
	big := storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector("spec.capacity", "2"),
		GetAttrs: func(object runtime.Object) (labels.Set, fields.Set, error) {
			capacity, _, err := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "capacity")
			return nil, fields.Set{"spec.capacity": fmt.Sprint(capacity)}, err
		},
	}
	list := &unstructured.UnstructuredList{}
	if err := store.GetList(t.Context(), "/example.com/widgets/", storage.ListOptions{Recursive: true, Predicate: big}, list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]unstructured.Unstructured{*want(2)}, list.Items); diff != "" {
		t.Errorf("LIST (-want +got):\n%s", diff)
	}
	past := storage.ListOptions{Recursive: true, Predicate: big, ResourceVersion: fmt.Sprint(created), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if err := store.GetList(t.Context(), "/example.com/widgets/", past, list); err != nil || len(list.Items) != 0 {
		t.Errorf("LIST of the past: %v, %v; want nothing that is selected", list.Items, err)
	}

	w, err := store.Watch(t.Context(), "/example.com/widgets/", storage.ListOptions{Recursive: true, Predicate: big, ResourceVersion: fmt.Sprint(created)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	entered := want(2)
	if err := store.Delete(t.Context(), key, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want(2), out); diff != "" {
		t.Errorf("Delete (-want +got):\n%s", diff)
	}
	for _, want := range []watch.Event{{Type: watch.Added, Object: entered}, {Type: watch.Deleted, Object: want(2)}} {
		if diff := cmp.Diff(want, next(t, w)); diff != "" {
			t.Errorf("watch (-want +got):\n%s", diff)
		}
	}
}
