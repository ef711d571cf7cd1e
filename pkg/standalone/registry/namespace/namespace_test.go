// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
)

func TestCreateCompletesNamespace(t *testing.T) {
	f := newFixture(t)
	tests := []struct {
		name string
		in   *corev1.Namespace
		want corev1.NamespaceSpec
	}{
		{"plain", named("plain"), corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}},
		{
			"finalizer of its own, status and label not the client's",
			&corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: map[string]string{"kubernetes.io/metadata.name": "other"}},
				Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/f"}},
				Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
			},
			corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/f", "kubernetes"}},
		},
		{
			"generated name",
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}},
			corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			created := f.create(test.in)
			stored, err := f.get(created.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []*corev1.Namespace{created, stored} {
				if diff := cmp.Diff(test.want, got.Spec); diff != "" {
					t.Errorf("spec (-want +got):\n%s", diff)
				}
				if got.Status.Phase != corev1.NamespaceActive || got.Labels["kubernetes.io/metadata.name"] != got.Name || got.UID == "" {
					t.Errorf("phase %q, labels %v, uid %q", got.Status.Phase, got.Labels, got.UID)
				}
			}
		})
	}
}

func TestCreateRefusesInvalidNamespace(t *testing.T) {
	f := newFixture(t)
	tests := []struct {
		name  string
		in    *corev1.Namespace
		field string
	}{
		{"name is no DNS label", named("a.b"), "metadata.name"},
		{"name too long", named(strings.Repeat("a", 64)), "metadata.name"},
		{"label", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a b": ""}}}, "metadata.labels"},
		{"metadata finalizer", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"short"}}}, "metadata.finalizers[0]"},
		{
			"spec finalizer",
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"short"}}},
			"spec.finalizers",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := f.rest.Create(f.ctx, test.in, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			status := &apierrors.StatusError{}
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("got %v, want Invalid", err)
			}
			if got := status.ErrStatus.Details.Causes[0].Field; got != test.field {
				t.Errorf("field %q, want %q: %v", got, test.field, err)
			}
		})
	}
}

func TestEachEndpointWritesItsPart(t *testing.T) {
	change := func(namespace *corev1.Namespace) {
		namespace.Annotations = map[string]string{"a": "b"}
		namespace.Spec.Finalizers = []corev1.FinalizerName{"example.com/new"}
		namespace.Status.Conditions = []corev1.NamespaceCondition{{Type: "X", Status: corev1.ConditionTrue}}
	}
	tests := []struct {
		name             string
		storage          func(*fixture) rest.Updater
		spec, conditions bool
	}{
		{"namespace", func(f *fixture) rest.Updater { return f.rest }, false, false},
		{"status", func(f *fixture) rest.Updater { return f.status }, false, true},
		{"finalize", func(f *fixture) rest.Updater { return f.finalize }, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.create(named("a"))
			got, err := f.update(test.storage(f), "a", change)
			if err != nil {
				t.Fatal(err)
			}
			if spec := got.Spec.Finalizers[0] == "example.com/new"; spec != test.spec {
				t.Errorf("spec written: %v, want %v", spec, test.spec)
			}
			if conditions := len(got.Status.Conditions) == 1; conditions != test.conditions {
				t.Errorf("status written: %v, want %v", conditions, test.conditions)
			}
			if got.Annotations["a"] != "b" {
				t.Error("metadata was not written")
			}
		})
	}
}

func TestUpdateRefusesInvalidNamespace(t *testing.T) {
	f := newFixture(t)
	f.create(named("a"))
	tests := []struct {
		name    string
		storage rest.Updater
		change  func(*corev1.Namespace)
		field   string
	}{
		{"active status says terminating", f.status, func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }, "status.Phase"},
		{"finalize", f.finalize, func(n *corev1.Namespace) { n.Spec.Finalizers = []corev1.FinalizerName{"x/y", "bad"} }, "spec.finalizers[1]"},
		{"metadata finalizer", f.rest, func(n *corev1.Namespace) { n.Finalizers = []string{"bad"} }, "metadata.finalizers[0]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := f.update(test.storage, "a", test.change)
			status := &apierrors.StatusError{}
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("got %v, want Invalid", err)
			}
			if got := status.ErrStatus.Details.Causes[0].Field; got != test.field {
				t.Errorf("field %q, want %q: %v", got, test.field, err)
			}
		})
	}
	if _, err := f.update(f.rest, "a", func(n *corev1.Namespace) { n.ResourceVersion = "1" }); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v, want a conflict", err)
	}
}

func TestDeleteWaitsForFinalizers(t *testing.T) {
	f := newFixture(t)
	in := named("a")
	in.Finalizers = []string{"example.com/late"}
	f.create(in)

	for range 2 { // a repeated DELETE changes nothing
		got, gone, err := f.delete("a", nil)
		if err != nil || gone {
			t.Fatalf("gone %v, %v", gone, err)
		}
		if got.DeletionTimestamp == nil || got.Status.Phase != corev1.NamespaceTerminating {
			t.Fatalf("deletionTimestamp %v, phase %q", got.DeletionTimestamp, got.Status.Phase)
		}
	}
	if _, err := f.update(f.status, "a", func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceActive }); !apierrors.IsInvalid(err) {
		t.Errorf("a terminating namespace was made active: %v", err)
	}

	if _, err := f.update(f.finalize, "a", func(n *corev1.Namespace) { n.Spec.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := f.get("a"); err != nil {
		t.Fatalf("gone in spite of metadata.finalizers: %v", err)
	}
	if _, gone, err := f.delete("a", nil); err != nil || gone {
		t.Errorf("a DELETE with a finalizer: gone %v, %v", gone, err)
	}
	if _, err := f.update(f.rest, "a", func(n *corev1.Namespace) { n.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := f.get("a"); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v, want NotFound", err)
	}
}

func TestFinalizeRemovesTerminatingNamespace(t *testing.T) {
	f := newFixture(t)
	f.create(named("a"))
	if _, err := f.update(f.finalize, "a", func(n *corev1.Namespace) { n.Spec.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := f.get("a"); err != nil {
		t.Fatalf("an active namespace was removed: %v", err)
	}
	f.create(named("b"))
	if _, _, err := f.delete("b", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.update(f.finalize, "b", func(n *corev1.Namespace) { n.Spec.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := f.get("b"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestDeletePreconditions(t *testing.T) {
	f := newFixture(t)
	created := f.create(named("a"))
	other, stale := types.UID("other"), "1"
	tests := []struct {
		name       string
		conditions metav1.Preconditions
		conflict   bool
	}{
		{"other uid", metav1.Preconditions{UID: &other}, true},
		{"stale resourceVersion", metav1.Preconditions{ResourceVersion: &stale}, true},
		{"both right", metav1.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := &metav1.DeleteOptions{Preconditions: &test.conditions, DryRun: []string{metav1.DryRunAll}}
			before := options.DeepCopy()
			if _, _, err := f.delete("a", options); apierrors.IsConflict(err) != test.conflict {
				t.Errorf("got %v, want a conflict: %v", err, test.conflict)
			}
			if diff := cmp.Diff(before, options); diff != "" {
				t.Errorf("the options were written to:\n%s", diff)
			}
			if got, err := f.get("a"); err != nil || got.DeletionTimestamp != nil {
				t.Errorf("a dry run has deleted: %v, %v", got, err)
			}
		})
	}
	if _, _, err := f.delete("absent", nil); !apierrors.IsNotFound(err) {
		t.Errorf("an absent namespace: %v, want NotFound", err)
	}
}

func TestDeleteValidationRefuses(t *testing.T) {
	f := newFixture(t)
	f.create(named("a"))
	refuse := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(corev1.Resource("namespaces"), "a", errors.New("no"))
	}
	if _, _, err := f.rest.Delete(f.ctx, "a", refuse, nil); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want Forbidden", err)
	}
	if got, err := f.get("a"); err != nil || got.DeletionTimestamp != nil {
		t.Errorf("deleted in spite of the refusal: %v, %v", got, err)
	}
}

func TestPropagationFinalizers(t *testing.T) {
	yes, no := true, false
	policy := func(p metav1.DeletionPropagation) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{PropagationPolicy: &p}
	}
	tests := []struct {
		name    string
		before  []string
		options *metav1.DeleteOptions
		want    []string
	}{
		{"nothing said", []string{"a/b", "orphan"}, &metav1.DeleteOptions{}, []string{"a/b", "orphan"}},
		{"background", []string{"a/b", "orphan", "foregroundDeletion"}, policy(metav1.DeletePropagationBackground), []string{"a/b"}},
		{"foreground", []string{"a/b", "orphan"}, policy(metav1.DeletePropagationForeground), []string{"a/b", "foregroundDeletion"}},
		{"orphan", []string{"foregroundDeletion"}, policy(metav1.DeletePropagationOrphan), []string{"orphan"}},
		{"orphanDependents", nil, &metav1.DeleteOptions{OrphanDependents: &yes}, []string{"orphan"}},                               //nolint:staticcheck // old clients send it
		{"not orphanDependents", []string{"orphan"}, &metav1.DeleteOptions{OrphanDependents: &no}, []string{"foregroundDeletion"}}, //nolint:staticcheck // as above
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := propagationFinalizers(test.before, test.options)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespacesAreNoCollectionToDelete(t *testing.T) {
	f := newFixture(t)
	if _, ok := any(f.rest).(rest.CollectionDeleter); ok {
		t.Error("namespaces must not support deletecollection")
	}
	if _, ok := any(f.finalize).(rest.Getter); ok {
		t.Error("namespaces/finalize must not be readable")
	}
}

func TestResetFields(t *testing.T) {
	f := newFixture(t)
	tests := map[string]rest.ResetFieldsStrategy{"status": f.rest, "spec": f.status}
	for want, storage := range tests {
		if got := storage.GetResetFields()["v1"].String(); got != "."+want {
			t.Errorf("%T resets %q, want .%s", storage, got, want)
		}
	}
}
