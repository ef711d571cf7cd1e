// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestApplyConflicts(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{})
	configMaps := client.CoreV1().ConfigMaps("default")
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return configMaps.Apply(t.Context(), applycorev1.ConfigMap("a", "default").WithData(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", false, map[string]string{"color": "red", "size": "1"}); err != nil {
		t.Fatal(err)
	}
	_, err := apply("two", false, map[string]string{"color": "blue"})
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) {
		t.Fatalf("got %v, want a conflict", err)
	}
	causes := status.Status().Details.Causes
	if len(causes) != 1 || causes[0].Type != metav1.CauseTypeFieldManagerConflict || causes[0].Field != ".data.color" || !strings.Contains(causes[0].Message, `"one"`) {
		t.Errorf("causes: %+v", causes)
	}
	if _, err := apply("two", true, map[string]string{"color": "blue"}); err != nil {
		t.Fatal(err)
	}
	// What "one" no longer names goes, unless it is somebody else's by now.
	got, err := apply("one", false, map[string]string{"weight": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"color": "blue", "weight": "2"}, got.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	managers := map[string]string{}
	for _, entry := range got.ManagedFields {
		managers[entry.Manager] = string(entry.Operation) + " " + entry.FieldsV1.GetRawString()
	}
	want := map[string]string{"one": `Apply {"f:data":{"f:weight":{}}}`, "two": `Apply {"f:data":{"f:color":{}}}`}
	if diff := cmp.Diff(want, managers); diff != "" {
		t.Errorf("managed fields (-want +got):\n%s", diff)
	}
}

func TestEveryTypeOfPatch(t *testing.T) {
	t.Parallel()
	pod := newPod("p", "", "10.0.0.1", map[string]string{"a": "1", "b": "2"})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "d", Image: "example.org/d"})
	_, client := start(t, testserver.Options{Objects: []runtime.Object{pod}})
	pods := client.CoreV1().Pods("default")
	for _, test := range []struct {
		kind       types.PatchType
		patch      string
		wantLabels map[string]string
		wantImages []string
	}{
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/a","value":"1"},{"op":"replace","path":"/metadata/labels/a","value":"3"}]`,
			map[string]string{"a": "3", "b": "2"}, []string{"example.org/echo", "example.org/d"}},
		{types.MergePatchType, `{"metadata":{"labels":{"b":null,"c":"4"}}}`,
			map[string]string{"a": "3", "c": "4"}, []string{"example.org/echo", "example.org/d"}},
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"d","image":"example.org/e"}]}}`,
			map[string]string{"a": "3", "c": "4"}, []string{"example.org/echo", "example.org/e"}},
		{types.ApplyPatchType, `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"f":"5"}}}`,
			map[string]string{"a": "3", "c": "4", "f": "5"}, []string{"example.org/echo", "example.org/e"}},
		{types.ApplyYAMLPatchType, "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {f: '6'}\n",
			map[string]string{"a": "3", "c": "4", "f": "6"}, []string{"example.org/echo", "example.org/e"}},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			options := metav1.PatchOptions{}
			if strings.Contains(string(test.kind), "apply-patch") {
				options.FieldManager = "test"
			}
			got, err := pods.Patch(t.Context(), "p", test.kind, []byte(test.patch), options)
			if err != nil {
				t.Fatal(err)
			}
			var images []string
			for _, container := range got.Spec.Containers {
				images = append(images, container.Image)
			}
			if diff := cmp.Diff(test.wantLabels, got.Labels) + cmp.Diff(test.wantImages, images); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := pods.Patch(t.Context(), "p", types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/a","value":"9"}]`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a test that fails: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "p", "text/plain", []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("an unknown type of patch: %v", err)
	}
}

func TestStaleWritesAreRefused(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("a", nil)}})
	configMaps := client.CoreV1().ConfigMaps("default")
	old, err := configMaps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := old.DeepCopy()
	changed.Data = map[string]string{"n": "1"}
	if changed, err = configMaps.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old object: %v", err)
	}
	patch := []byte(`{"metadata":{"resourceVersion":"` + old.ResourceVersion + `","labels":{"x":"y"}}}`)
	if _, err := configMaps.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old object: %v", err)
	}
	for name, preconditions := range map[string]metav1.Preconditions{
		"revision": {ResourceVersion: &old.ResourceVersion}, "uid": {UID: new(types.UID)},
	} {
		if err := configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &preconditions}); !apierrors.IsConflict(err) {
			t.Errorf("the deletion of an object with another %s: %v", name, err)
		}
	}
	if _, err := configMaps.Create(t.Context(), newConfigMap("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating it again: %v", err)
	}
	same, err := configMaps.Update(t.Context(), changed, metav1.UpdateOptions{})
	if err != nil || same.ResourceVersion != changed.ResourceVersion {
		t.Errorf("an update that changes nothing: revision %s, before %s, %v", same.ResourceVersion, changed.ResourceVersion, err)
	}
}

func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{})
	names, uids := map[string]bool{}, map[types.UID]bool{}
	for range 20 {
		object := newConfigMap("", nil)
		object.GenerateName = "made-"
		made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(made.Name, "made-") || len(made.Name) != len("made-")+5 || made.UID == "" || made.CreationTimestamp.IsZero() {
			t.Errorf("name %q, uid %q, created %v", made.Name, made.UID, made.CreationTimestamp)
		}
		names[made.Name], uids[made.UID] = true, true
	}
	if len(names) != 20 || len(uids) != 20 {
		t.Errorf("%d names and %d uids of 20 objects", len(names), len(uids))
	}
}

// warnings keeps what the server warns of.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	server, _ := start(t, testserver.Options{})
	var warned warnings
	config := rest.CopyConfig(server.Upstream)
	config.WarningHandler = &warned
	client := newClient(t, config).CoreV1().RESTClient()
	post := func(validation, name string) error {
		return client.Post().Namespace("default").Resource("configmaps").Param("fieldValidation", validation).
			SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"dat":{"a":"b"},"immutable":false,"immutable":true}`)).
			Do(t.Context()).Error()
	}
	err := post("Strict", "strict")
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dat"`) || !strings.Contains(err.Error(), `duplicate field "immutable"`) {
		t.Errorf("Strict: %v", err)
	}
	if err := post("Warn", "warn"); err != nil || len(warned) != 2 {
		t.Errorf("Warn: %v, warnings %q", err, warned)
	}
	warned = nil
	if err := post("Ignore", "ignore"); err != nil || len(warned) != 0 {
		t.Errorf("Ignore: %v, warnings %q", err, warned)
	}
}

func TestDryRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("a", nil)}})
	all := []string{metav1.DryRunAll}
	configMaps := client.CoreV1().ConfigMaps("default")
	made, err := configMaps.Create(t.Context(), newConfigMap("b", nil), metav1.CreateOptions{DryRun: all})
	if err != nil || made.UID == "" {
		t.Errorf("creating: %v, %v", made, err)
	}
	if got, err := configMaps.Update(t.Context(), newConfigMap("a", map[string]string{"x": "y"}), metav1.UpdateOptions{DryRun: all}); err != nil || got.Data["x"] != "y" {
		t.Errorf("updating: %v, %v", got, err)
	}
	if _, err := configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{DryRun: all}); err != nil {
		t.Error(err)
	}
	if err := configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Error(err)
	}
	if err := configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" || list.Items[0].Data != nil {
		t.Errorf("afterwards: %v, %v", list, err)
	}
	// What is allocated in a dry run can be had afterwards.
	service := newService("s", nil)
	service.Spec.ClusterIP = "10.96.7.7"
	for _, dryRun := range [][]string{all, nil} {
		if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{DryRun: dryRun}); err != nil {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
}

func TestStatusIsApart(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newPod("p", "", "10.0.0.1", nil)}})
	pods := client.CoreV1().Pods("default")
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Labels, pod.Status.Message = map[string]string{"a": "b"}, "through the object"
	if pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if pod.Status.Message != "" || pod.Labels["a"] != "b" {
		t.Errorf("after an update of the object: labels %v, message %q", pod.Labels, pod.Status.Message)
	}
	pod.Labels, pod.Status.Message = map[string]string{"a": "c"}, "through the status"
	pod.Spec.Containers[0].Image = "example.org/other"
	if pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if pod.Status.Message != "through the status" || pod.Spec.Containers[0].Image != "example.org/echo" {
		t.Errorf("after an update of the status: image %s, message %q", pod.Spec.Containers[0].Image, pod.Status.Message)
	}
	// An applied object does not own its status.
	applied, err := pods.Apply(t.Context(), applycorev1.Pod("p", "default").WithStatus(applycorev1.PodStatus().WithMessage("applied")), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range applied.ManagedFields {
		if entry.Manager == "test" && strings.Contains(entry.FieldsV1.GetRawString(), "f:status") {
			t.Errorf("the manager owns %s", entry.FieldsV1.GetRawString())
		}
	}
	if applied.Status.Message != "through the status" {
		t.Errorf("after applying the object: message %q", applied.Status.Message)
	}
}
