// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/grid-apiserver/grid-apiserver/internal/manifest"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// bulbs has no status of its own, and a version that is not served.
const bulbs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bulbs.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: bulbs, kind: Bulb}
  versions:
    - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - {name: v0, served: false, storage: false, schema: *any}
---
apiVersion: example.org/v1
kind: Bulb
metadata: {name: one}
status: {lit: true}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: kube-system}
spec:
  containers: [{name: c, image: example.org/c}]
status: {phase: Running}
`

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestApply(t *testing.T) {
	testserver.DiscardLogs()
	server := testserver.Start(t, testserver.Options{CustomResources: true})
	applier, err := manifest.NewApplier(server.Upstream, "test")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	// What the server has is asked for before there are bulbs.
	if err := applier.Apply(t.Context(), decode(t, configMapA)...); err != nil {
		t.Fatal(err)
	}
	var revisions []string
	for range 2 {
		if err := applier.Apply(t.Context(), decode(t, bulbs)...); err != nil {
			t.Fatal(err)
		}
		bulb, err := client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "bulbs"}).Namespace("default").Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("kube-system").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lit, _, _ := unstructured.NestedBool(bulb.Object, "status", "lit")
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if !lit || phase != "Running" {
			t.Errorf("the statuses: %v, %s", lit, phase)
		}
		revisions = append(revisions, bulb.GetResourceVersion()+" "+pod.GetResourceVersion())
	}
	if diff := cmp.Diff(revisions[0], revisions[1]); diff != "" {
		t.Errorf("applying the same again changed something (-first +second):\n%s", diff)
	}
	err = applier.Apply(t.Context(), decode(t, configMapB+"---\napiVersion: example.org/v1\nkind: Tube\nmetadata: {name: t}\n")...)
	if err == nil || !strings.Contains(err.Error(), "applying Tube t") {
		t.Errorf("an unknown kind: %v", err)
	}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Get(t.Context(), "b", metav1.GetOptions{}); err != nil {
		t.Errorf("what came before it: %v", err)
	}
}
