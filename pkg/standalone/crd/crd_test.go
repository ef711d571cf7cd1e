// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type fields = map[string]any

func specOf(object *unstructured.Unstructured) fields {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	return spec
}

func TestTwoVersions(t *testing.T) {
	s := start(t)
	s.define(t, newWidgets())
	v1, v2 := s.objects.Resource(widgetsV1), s.objects.Resource(widgetsV2)

	created, err := v1.Create(t.Context(), object("example.org/v1", "a", fields{"spec": fields{"name": "x", "unknown": "y"}}), createOptions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields{"name": "x", "size": int64(3)}, specOf(created)); diff != "" {
		t.Errorf("created through v1, pruned and defaulted (-want +got):\n%s", diff)
	}
	read, err := v2.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What is read is defaulted as the stored version says, before it is converted.
	if diff := cmp.Diff(specOf(created), specOf(read)); diff != "" {
		t.Errorf("read through v2 (-want +got):\n%s", diff)
	}
	if read.GetAPIVersion() != "example.org/v2" || read.GetResourceVersion() != created.GetResourceVersion() || read.GetUID() != created.GetUID() {
		t.Errorf("read through v2: %s at %s", read.GetAPIVersion(), read.GetResourceVersion())
	}
	other, err := v2.Create(t.Context(), object("example.org/v2", "b", fields{"spec": fields{"size": int64(1)}}), createOptions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields{"size": int64(1), "color": "red"}, specOf(other)); diff != "" {
		t.Errorf("created through v2 (-want +got):\n%s", diff)
	}
	list, err := v1.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[1].GetAPIVersion() != "example.org/v1" {
		t.Errorf("listed through v1: %v", list)
	}
	_, err = v2.Create(t.Context(), object("example.org/v2", "c", fields{"spec": fields{"size": int64(11)}}), createOptions)
	if !apierrors.IsInvalid(err) {
		t.Errorf("a rule is broken: %v", err)
	}
}

func TestWatchesOfBothVersions(t *testing.T) {
	s := start(t)
	s.define(t, newWidgets())
	watches := map[string]watch.Interface{}
	for _, resource := range []schema.GroupVersionResource{widgetsV1, widgetsV2} {
		w, err := s.objects.Resource(resource).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		watches["example.org/"+resource.Version] = w
	}
	made, err := s.objects.Resource(widgetsV2).Create(t.Context(), object("example.org/v2", "a", fields{"spec": fields{}}), createOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.objects.Resource(widgetsV1).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for version, w := range watches {
		for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
			event := <-w.ResultChan()
			got, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("%s: %v", version, event)
			}
			if event.Type != want || got.GetAPIVersion() != version || got.GetUID() != made.GetUID() {
				t.Errorf("%s %s %s, want %s of %s", event.Type, got.GetAPIVersion(), got.GetUID(), want, version)
			}
		}
	}
}

func TestServerSideApply(t *testing.T) {
	s := start(t)
	s.define(t, newWidgets())
	v1, v2 := s.objects.Resource(widgetsV1), s.objects.Resource(widgetsV2)
	if _, err := v1.Apply(t.Context(), "a", object("example.org/v1", "a", fields{"spec": fields{"name": "one"}}), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	other := object("example.org/v2", "a", fields{"spec": fields{"name": "two"}})
	if _, err := v2.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		t.Errorf("a field of another manager: %v", err)
	}
	applied, err := v2.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := specOf(applied)["name"]; got != "two" {
		t.Errorf("applied by force: %v", got)
	}
	if _, err := v1.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"phase":"x"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("patching the status: %v", err)
	}
}

// TestDefinitionsCanBeApplied has a definition whose own fields are managed.
func TestDefinitionsCanBeApplied(t *testing.T) {
	s := start(t)
	definition := newWidgets()
	content, err := unstructuredOf(definition)
	if err != nil {
		t.Fatal(err)
	}
	definitions := s.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for range 2 {
		if _, err := definitions.Apply(t.Context(), definition.Name, content, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
		s.waitServed(t, widgetGroup)
	}
}

func TestDeletedDefinitionTakesItsObjects(t *testing.T) {
	s := start(t)
	s.define(t, newWidgets())
	objects := s.objects.Resource(widgetsV1)
	var last string
	for i := range 5 {
		made, err := objects.Create(t.Context(), object("example.org/v1", fmt.Sprint("w", i), nil), createOptions)
		if err != nil {
			t.Fatal(err)
		}
		last = made.GetResourceVersion()
	}
	definitions := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
	if err := definitions.Delete(t.Context(), "widgets."+widgetGroup, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "gone", func(ctx context.Context) (bool, error) {
		_, err := definitions.Get(ctx, "widgets."+widgetGroup, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	eventually(t, "unknown", func(ctx context.Context) (bool, error) {
		_, err := objects.List(ctx, metav1.ListOptions{})
		return apierrors.IsNotFound(err), nil
	})
	s.define(t, newWidgets())
	var list *unstructured.UnstructuredList
	eventually(t, "served again", func(ctx context.Context) (_ bool, err error) {
		list, err = objects.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if len(list.Items) != 0 || len(list.GetResourceVersion()) < len(last) || list.GetResourceVersion() <= last {
		t.Errorf("defined anew: %d objects at %s after %s", len(list.Items), list.GetResourceVersion(), last)
	}
}

// TestChangedDefinition has storages that are built anew over what is stored.
func TestChangedDefinition(t *testing.T) {
	s := start(t)
	s.define(t, newWidgets())
	objects := s.objects.Resource(widgetsV1)
	made, err := objects.Create(t.Context(), object("example.org/v1", "a", fields{"spec": fields{"name": "x"}}), createOptions)
	if err != nil {
		t.Fatal(err)
	}
	patch := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/shape","value":{"type":"string","default":"round"}},
		{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name"}]`
	if _, err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), "widgets."+widgetGroup, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var read *unstructured.Unstructured
	eventually(t, "defaulted", func(ctx context.Context) (_ bool, err error) {
		read, err = objects.Get(ctx, "a", metav1.GetOptions{})
		return err == nil && specOf(read)["shape"] == "round", nil
	})
	if diff := cmp.Diff(fields{"size": int64(3), "shape": "round"}, specOf(read)); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
	if read.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("at revision %s, was %s", read.GetResourceVersion(), made.GetResourceVersion())
	}
	if _, err := objects.Create(t.Context(), object("example.org/v1", "b", nil), createOptions); err != nil {
		t.Fatal(err)
	}
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 {
		t.Errorf("%d objects", len(list.Items))
	}
}
