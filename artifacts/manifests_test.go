// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts checks the manifests beside it: each document has a known type and no unknown field, and they
// refer to each other by names that exist.
package artifacts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// kustomization are the fields that kustomization.yaml uses.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

// alternatives are manifests that are applied in another way than by the kustomization.
var alternatives = []string{"endpoints-role.yaml", "static-pod.yaml"}

func TestManifestsAreOfKnownTypesWithoutUnknownFields(t *testing.T) {
	for _, file := range manifests(t) {
		t.Run(file, func(t *testing.T) {
			if len(decode(t, file)) == 0 {
				t.Error("no documents")
			}
		})
	}
}

func TestKustomizationListsEveryManifest(t *testing.T) {
	k := readKustomization(t)
	if k.Kind != "Kustomization" || k.APIVersion != "kustomize.config.k8s.io/v1beta1" {
		t.Errorf("kind %q of %q", k.Kind, k.APIVersion)
	}
	want := slices.DeleteFunc(manifests(t), func(file string) bool { return slices.Contains(alternatives, file) })
	got := slices.Sorted(slices.Values(k.Resources))
	if !slices.Equal(got, want) {
		t.Errorf("resources %q, the folder has %q", got, want)
	}
}

func TestManifestsReferToWhatExists(t *testing.T) {
	var workloads []workload
	accounts, configMaps, roles := map[string]bool{}, map[string]map[string]string{}, map[string]bool{}
	var bindings []*rbacv1.ClusterRoleBinding
	for _, file := range append(readKustomization(t).Resources, "endpoints-role.yaml") {
		for _, obj := range decode(t, file) {
			switch obj := obj.(type) {
			case *appsv1.DaemonSet:
				workloads = append(workloads, workload{obj.ObjectMeta, obj.Spec.Selector, obj.Spec.Template})
			case *appsv1.Deployment:
				workloads = append(workloads, workload{obj.ObjectMeta, obj.Spec.Selector, obj.Spec.Template})
			case *corev1.ServiceAccount:
				accounts[obj.Namespace+"/"+obj.Name] = true
			case *corev1.ConfigMap:
				configMaps[obj.Namespace+"/"+obj.Name] = obj.Data
			case *rbacv1.ClusterRole:
				roles["/"+obj.Name] = true
			case *rbacv1.Role:
				roles[obj.Namespace+"/"+obj.Name] = true
			case *rbacv1.ClusterRoleBinding:
				bindings = append(bindings, obj)
			case *rbacv1.RoleBinding:
				// The same fields: a namespace makes the difference.
				bindings = append(bindings, &rbacv1.ClusterRoleBinding{ObjectMeta: obj.ObjectMeta, Subjects: obj.Subjects, RoleRef: obj.RoleRef})
			case *apiextensionsv1.CustomResourceDefinition:
				// It refers to nothing. See TestCustomResourceDefinitionIsValid.
			default:
				t.Errorf("%s has a %T, which this test does not check", file, obj)
			}
		}
	}
	for _, binding := range bindings {
		if !roles[binding.Namespace+"/"+binding.RoleRef.Name] {
			t.Errorf("binding %s refers to the role %s, which does not exist", binding.Name, binding.RoleRef.Name)
		}
		for _, subject := range binding.Subjects {
			if !accounts[subject.Namespace+"/"+subject.Name] {
				t.Errorf("binding %s refers to the ServiceAccount %s, which does not exist", binding.Name, subject.Name)
			}
		}
	}
	if len(workloads) != 2 {
		t.Errorf("%d workloads, want a DaemonSet and a Deployment", len(workloads))
	}
	images := map[string]bool{}
	for _, image := range readKustomization(t).Images {
		images[image.Name] = true
	}
	for _, workload := range workloads {
		t.Run(workload.meta.Name, func(t *testing.T) { workload.check(t, accounts, images, configMaps) })
	}
}

// workload is what a DaemonSet and a Deployment have in common.
type workload struct {
	meta     metav1.ObjectMeta
	selector *metav1.LabelSelector
	pod      corev1.PodTemplateSpec
}

// check tests that what the pod refers to is there: ServiceAccounts, images, volumes, ports and keys of ConfigMaps.
func (w workload) check(t *testing.T, accounts, images map[string]bool, configMaps map[string]map[string]string) {
	for key, value := range w.selector.MatchLabels {
		if w.pod.Labels[key] != value {
			t.Errorf("the selector's label %s=%s is not on the pod", key, value)
		}
	}
	if !accounts[w.meta.Namespace+"/"+w.pod.Spec.ServiceAccountName] {
		t.Errorf("ServiceAccount %q does not exist", w.pod.Spec.ServiceAccountName)
	}
	volumes := map[string]bool{}
	for _, volume := range w.pod.Spec.Volumes {
		volumes[volume.Name] = true
	}
	for _, container := range w.pod.Spec.Containers {
		if !images[container.Image] {
			t.Errorf("image %q is not replaced by the kustomization", container.Image)
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("volume %q does not exist", mount.Name)
			}
		}
		for _, env := range container.Env {
			if env.ValueFrom == nil || env.ValueFrom.ConfigMapKeyRef == nil {
				continue
			}
			ref := env.ValueFrom.ConfigMapKeyRef
			if _, ok := configMaps[w.meta.Namespace+"/"+ref.Name][ref.Key]; !ok {
				t.Errorf("%s: ConfigMap %s has no key %q", env.Name, ref.Name, ref.Key)
			}
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil {
				t.Fatal("a probe is missing")
			}
			if !slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool {
				return probe.HTTPGet.Port == intstr.FromString(port.Name) || probe.HTTPGet.Port == intstr.FromInt32(port.ContainerPort)
			}) {
				t.Errorf("the probe of %s is for the port %s, which the container has not", probe.HTTPGet.Path, &probe.HTTPGet.Port)
			}
		}
	}
}

// manifests returns the files with objects, sorted.
func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "kustomization.yaml" })
}

// decode returns the objects of a file. An unknown type, an unknown field and a repeated key are errors.
func decode(t *testing.T, file string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known))
	utilruntime.Must(apiextensionsv1.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, obj)
	}
}

func readKustomization(t *testing.T) kustomization {
	t.Helper()
	content, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(content, &k); err != nil {
		t.Fatal(err)
	}
	return k
}
