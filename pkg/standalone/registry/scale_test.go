// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func TestScale(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"deployment", "replicaset", "statefulset"} {
		t.Run(name, func(t *testing.T) {
			object := example(t, name)
			client := s.resource(object)
			created := s.create(t, object)
			if _, err := client.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"replicas":1}}`), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}

			got, err := client.Get(t.Context(), "web", metav1.GetOptions{}, "scale")
			if err != nil {
				t.Fatal(err)
			}
			scale := &autoscalingv1.Scale{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, scale); err != nil {
				t.Fatal(err)
			}
			if scale.APIVersion != "autoscaling/v1" || scale.Kind != "Scale" || scale.UID != created.GetUID() ||
				scale.Spec.Replicas != 1 || scale.Status != (autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=web"}) {
				t.Errorf("got %+v", scale)
			}

			stale := got.DeepCopy()
			for _, replicas := range []int64{4, 0} {
				if err := unstructured.SetNestedField(got.Object, replicas, "spec", "replicas"); err != nil {
					t.Fatal(err)
				}
				if got, err = client.Update(t.Context(), got, metav1.UpdateOptions{FieldManager: "scaler"}, "scale"); err != nil {
					t.Fatal(err)
				}
				parent, err := client.Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if n, _, _ := unstructured.NestedInt64(parent.Object, "spec", "replicas"); n != replicas || parent.GetResourceVersion() != got.GetResourceVersion() {
					t.Errorf("scaled to %d at %s, got %d at %s", replicas, got.GetResourceVersion(), n, parent.GetResourceVersion())
				}
				if replicas == 0 {
					continue
				}
				var owned bool
				for _, entry := range parent.GetManagedFields() {
					owned = owned || entry.Manager == "scaler" && strings.Contains(entry.FieldsV1.GetRawString(), "f:replicas")
				}
				if !owned {
					t.Errorf("who scales does not own the replicas: %v", parent.GetManagedFields())
				}
			}
			if _, err := client.Update(t.Context(), stale, metav1.UpdateOptions{}, "scale"); !apierrors.IsConflict(err) {
				t.Errorf("with a stale resourceVersion: %v", err)
			}
			if _, err := client.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), metav1.PatchOptions{}, "scale"); !apierrors.IsInvalid(err) {
				t.Errorf("with -1 replicas: %v", err)
			}
			if _, err := client.Patch(t.Context(), "none", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}, "scale"); !apierrors.IsNotFound(err) {
				t.Errorf("scaling what is not there: %v", err)
			}
		})
	}
}

// A change of the template is counted in an annotation too, which clients cannot set.
func TestTemplateGenerationOfDaemonSets(t *testing.T) {
	s := newServer(t)
	object := example(t, "daemonset")
	object.SetAnnotations(map[string]string{"deprecated.daemonset.template.generation": "7"})
	s.create(t, object)
	client := s.resource(object)
	for _, test := range []struct{ patch, want string }{
		{`{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"99"}}}`, "7"},
		{`{"spec":{"minReadySeconds":1}}`, "7"},
		{`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`, "8"},
	} {
		got, err := client.Patch(t.Context(), "web", types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if generation := got.GetAnnotations()["deprecated.daemonset.template.generation"]; generation != test.want {
			t.Errorf("%s: template generation %s, want %s", test.patch, generation, test.want)
		}
	}
}
