// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestEveryKindIsStored(t *testing.T) {
	s := newServer(t)
	for _, name := range exampleNames(t) {
		t.Run(name, func(t *testing.T) {
			object := example(t, name)
			client := s.resource(object)
			created := s.create(t, object)
			if created.GetUID() == "" || created.GetResourceVersion() == "" || created.GetCreationTimestamp() == (metav1.Time{}) {
				t.Errorf("created without system metadata: %v", created.Object["metadata"])
			}
			if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("created twice: %v", err)
			}

			changed := created.DeepCopy()
			changed.SetLabels(map[string]string{"changed": "yes"})
			updated, err := client.Update(t.Context(), changed, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("updated with a stale resourceVersion: %v", err)
			}
			got, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(updated.Object, got.Object); diff != "" {
				t.Errorf("read back (-updated +got):\n%s", diff)
			}
			list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "changed=yes", FieldSelector: "metadata.name=" + object.GetName()})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].GetUID() != got.GetUID() {
				t.Errorf("listed %d objects", len(list.Items))
			}
			if _, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}

			if object.GetKind() == "Namespace" {
				return // it waits for its controller
			}
			if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "changed=yes"}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("deleted, but got %v", err)
			}
		})
	}
}

// kube-apiserver takes an update without resourceVersion for one of whatever is
// stored. Leases and custom resources are those that are not so lenient.
func TestUpdateWithoutRevision(t *testing.T) {
	s := newServer(t)
	for _, name := range exampleNames(t) {
		t.Run(name, func(t *testing.T) {
			object := example(t, name)
			s.create(t, object)
			_, err := s.resource(object).Update(t.Context(), object, metav1.UpdateOptions{})
			if kind := object.GetKind(); kind != "Lease" && kind != "ServiceGrid" {
				if err != nil {
					t.Error(err)
				}
			} else if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be specified for an update") {
				t.Errorf("got %v", err)
			}
		})
	}
	grid := example(t, "servicegrid")
	if _, err := s.resource(grid).UpdateStatus(t.Context(), grid, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("the status of a ServiceGrid: %v", err)
	}
}

// Finalizers need a domain, but for those of Kubernetes. kube-apiserver makes
// exceptions: Leases, Events of the core group, and custom resources.
func TestFinalizersWithoutDomainAreRefused(t *testing.T) {
	s := newServer(t)
	for _, name := range exampleNames(t) {
		t.Run(name, func(t *testing.T) {
			object := example(t, name)
			client := s.resource(object)
			refused := object.GetKind() != "Lease" && object.GetKind() != "ServiceGrid" && name != "event"
			check := func(what string, err error) {
				if refused != apierrors.IsInvalid(err) {
					t.Errorf("%s with such a finalizer: %v", what, err)
				}
			}
			bad := object.DeepCopy()
			bad.SetFinalizers([]string{"bad"})
			_, err := client.Create(t.Context(), bad, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			check("create", err)
			s.create(t, object)
			_, err = client.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":["bad"]}}`),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			check("update", err)
			if _, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":["a.example/b","orphan"]}}`),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("good finalizers: %v", err)
			}
		})
	}
}

// A write to the resource leaves the status, one to the status leaves the rest.
func TestStatusIsSeparate(t *testing.T) {
	s := newServer(t)
	for _, test := range []struct{ example, status string }{
		{"pod", `{"phase":"Running"}`},
		{"node", `{"phase":"Running"}`},
		{"servicegrid", `{"serviceName":"x"}`},
		{"servicecidr", `{"conditions":[{"type":"Ready","status":"True","reason":"x","message":"","lastTransitionTime":"2026-06-01T11:00:00Z"}]}`},
		{"deployment", `{"replicas":3,"readyReplicas":1}`},
		{"replicaset", `{"replicas":3,"readyReplicas":1}`},
		{"statefulset", `{"replicas":3,"readyReplicas":1}`},
		{"daemonset", `{"desiredNumberScheduled":3}`},
	} {
		t.Run(test.example, func(t *testing.T) {
			object := example(t, test.example)
			client := s.resource(object)
			created := s.create(t, object)
			patch := []byte(`{"metadata":{"ownerReferences":null},"spec":{"replicas":7,"gridUniqKey":"other","unschedulable":true,"minReadySeconds":5},"status":` + test.status + `}`)

			got, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(created.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("a write to the status changed the spec (-before +after):\n%s", diff)
			}
			if cmp.Equal(created.Object["status"], got.Object["status"]) {
				t.Errorf("the status was not written: %v", got.Object["status"])
			}
			if got.GetGeneration() != created.GetGeneration() {
				t.Errorf("generation %d after a write to the status", got.GetGeneration())
			}

			before := got
			reset := got.DeepCopy()
			delete(reset.Object, "status")
			reset.SetAnnotations(map[string]string{"a": "b"})
			got, err = client.Update(t.Context(), reset, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Object["status"], got.Object["status"]); diff != "" {
				t.Errorf("an update changed the status (-before +after):\n%s", diff)
			}
		})
	}
}

// Who applies a whole object owns nothing of what the request cannot set.
func TestAppliedStatusIsNotOwned(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"pod", "node", "servicegrid", "deployment", "service"} {
		t.Run(name, func(t *testing.T) {
			object := example(t, name)
			unstructured.RemoveNestedField(object.Object, "spec", "serviceAccount")
			if err := unstructured.SetNestedField(object.Object, map[string]any{"observedGeneration": int64(5)}, "status"); err != nil {
				t.Fatal(err)
			}
			if name == "node" || name == "service" {
				if err := unstructured.SetNestedField(object.Object, map[string]any{}, "status"); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.resource(object).Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test"})
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range got.GetManagedFields() {
				if fields := entry.FieldsV1.GetRawString(); strings.Contains(fields, "f:status") || !strings.Contains(fields, "f:spec") {
					t.Errorf("%s owns %s", entry.Manager, fields)
				}
			}
		})
	}
}

func TestGenerations(t *testing.T) {
	s := newServer(t)
	for _, test := range []struct {
		example, patch string
		first, want    int64
	}{
		{"pod", `{"spec":{"containers":[{"name":"web","image":"web:2"}]}}`, 1, 2},
		{"deployment", `{"spec":{"replicas":2}}`, 1, 2},
		{"deployment", `{"metadata":{"annotations":{"a":"b"}}}`, 1, 2},
		{"deployment", `{"metadata":{"labels":{"a":"b"}}}`, 1, 1},
		{"replicaset", `{"metadata":{"annotations":{"a":"b"}}}`, 1, 1},
		{"statefulset", `{"spec":{"replicas":2}}`, 1, 2},
		{"daemonset", `{"spec":{"minReadySeconds":2}}`, 1, 2},
		{"endpointslice", `{"metadata":{"labels":{"a":"b"}}}`, 1, 2},
		{"endpointslice", `{"metadata":{"annotations":{"a":"b"}}}`, 1, 1},
		{"servicegrid", `{"spec":{"gridUniqKey":"zone2"}}`, 1, 2},
		{"configmap", `{"data":{"a":"b"}}`, 0, 0},
	} {
		t.Run(test.example+" "+test.patch, func(t *testing.T) {
			object := example(t, test.example)
			object.SetName(fmt.Sprintf("%s-%d", object.GetName(), len(test.patch)))
			created := s.create(t, object)
			got, err := s.resource(object).Patch(t.Context(), object.GetName(), types.StrategicMergePatchType, []byte(test.patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if created.GetGeneration() != test.first || got.GetGeneration() != test.want {
				t.Errorf("generation %d, then %d; want %d, then %d", created.GetGeneration(), got.GetGeneration(), test.first, test.want)
			}
		})
	}
}

// TestDiscovery compares the names of all resources with testdata/discovery.txt.
func TestDiscovery(t *testing.T) {
	s := newServer(t)
	client := discovery.NewDiscoveryClientForConfigOrDie(s.config)
	var lines []string
	for _, version := range []string{
		"v1", "apps/v1", "coordination.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1", "networking.k8s.io/v1",
		"rbac.authorization.k8s.io/v1", "superedge.io/v1",
	} {
		list, err := client.ServerResourcesForGroupVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			kind := r.Kind
			if r.Group != "" || r.Version != "" {
				kind = r.Group + "/" + r.Version + " " + kind
			}
			slices.Sort(r.Verbs)
			lines = append(lines, fmt.Sprintf("%s %s singular=%s namespaced=%v kind=%s short=%v categories=%v verbs=%v",
				version, r.Name, r.SingularName, r.Namespaced, kind, r.ShortNames, r.Categories, r.Verbs))
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "discovery.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
