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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
var alternatives = []string{"static-pod.yaml"}

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

func TestDaemonSetRefersToWhatExists(t *testing.T) {
	var daemonSet *appsv1.DaemonSet
	accounts, configMaps, roles := map[string]bool{}, map[string]map[string]string{}, map[string]bool{}
	var bindings []*rbacv1.ClusterRoleBinding
	for _, file := range readKustomization(t).Resources {
		for _, obj := range decode(t, file) {
			switch obj := obj.(type) {
			case *appsv1.DaemonSet:
				daemonSet = obj
			case *corev1.ServiceAccount:
				accounts[obj.Namespace+"/"+obj.Name] = true
			case *corev1.ConfigMap:
				configMaps[obj.Namespace+"/"+obj.Name] = obj.Data
			case *rbacv1.ClusterRole:
				roles[obj.Name] = true
			case *rbacv1.ClusterRoleBinding:
				bindings = append(bindings, obj)
			default:
				t.Errorf("%s has a %T, which this test does not check", file, obj)
			}
		}
	}
	if daemonSet == nil {
		t.Fatal("there is no DaemonSet")
	}
	for _, binding := range bindings {
		if !roles[binding.RoleRef.Name] {
			t.Errorf("binding %s refers to the role %s, which does not exist", binding.Name, binding.RoleRef.Name)
		}
		for _, subject := range binding.Subjects {
			if !accounts[subject.Namespace+"/"+subject.Name] {
				t.Errorf("binding %s refers to the ServiceAccount %s, which does not exist", binding.Name, subject.Name)
			}
		}
	}

	pod := daemonSet.Spec.Template
	for key, value := range daemonSet.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("the selector's label %s=%s is not on the pod", key, value)
		}
	}
	if !accounts[daemonSet.Namespace+"/"+pod.Spec.ServiceAccountName] {
		t.Errorf("ServiceAccount %q does not exist", pod.Spec.ServiceAccountName)
	}
	volumes := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = true
	}
	images := map[string]bool{}
	for _, image := range readKustomization(t).Images {
		images[image.Name] = true
	}
	for _, container := range pod.Spec.Containers {
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
			if _, ok := configMaps[daemonSet.Namespace+"/"+ref.Name][ref.Key]; !ok {
				t.Errorf("%s: ConfigMap %s has no key %q", env.Name, ref.Name, ref.Key)
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
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
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
