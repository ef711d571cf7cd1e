// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestFinalizersKeepAnObject(t *testing.T) {
	t.Parallel()
	kept := newConfigMap("a", nil)
	kept.Finalizers = []string{"example.org/wait"}
	_, client := start(t, testserver.Options{Objects: []runtime.Object{kept}})
	configMaps := client.CoreV1().ConfigMaps("default")
	if err := configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := configMaps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.DeletionTimestamp == nil {
		t.Fatalf("after the deletion: %v, %v", got, err)
	}
	got.Finalizers = append(got.Finalizers, "example.org/more")
	if _, err := configMaps.Update(t.Context(), got, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a finalizer that is added after the deletion: %v", err)
	}
	if _, err := configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without finalizers: %v", err)
	}
}

func TestDeletionOfASelection(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for i := range 6 {
		object := newConfigMap(fmt.Sprint("c", i), nil)
		object.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
		objects = append(objects, object)
	}
	_, client := start(t, testserver.Options{Objects: objects})
	configMaps := client.CoreV1().ConfigMaps("default")
	if err := configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "even=true"}); err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		list, err := configMaps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			out = append(out, item.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"c1", "c3", "c5"}, names()); diff != "" {
		t.Errorf("by label (-want +got):\n%s", diff)
	}
	if err := configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=c3"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c1", "c5"}, names()); diff != "" {
		t.Errorf("by field (-want +got):\n%s", diff)
	}
}

func TestNamespaceGoesWithItsContents(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team", Finalizers: []string{"example.org/wait"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "team"}},
	}})
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if _, err := client.CoreV1().Secrets("team").Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Secret: %v", err)
		}
		return ""
	})
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
	if err != nil || namespace.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("the namespace while a finalizer waits: %v, %v", namespace, err)
	}
	if _, err := client.CoreV1().Secrets("team").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("creating in a namespace that goes: %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("team").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if namespace, err := client.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the namespace: %v, %v", namespace.Status, err)
		}
		return ""
	})
}

func TestGarbageIsCollected(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("owner", nil)}})
	configMaps := client.CoreV1().ConfigMaps("default")
	owner, err := configMaps.Get(t.Context(), "owner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := newConfigMap("owned", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	stale := newConfigMap("stale", nil)
	stale.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: "another"}}
	for _, object := range []*corev1.ConfigMap{owned, stale} {
		if _, err := configMaps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(name string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			if _, err := configMaps.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s is still there: %v", name, err)
			}
			return ""
		})
	}
	gone("stale") // its owner is another object of the same name
	if _, err := configMaps.Get(t.Context(), "owned", metav1.GetOptions{}); err != nil {
		t.Errorf("while the owner is there: %v", err)
	}
	if err := configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone("owned")
}
