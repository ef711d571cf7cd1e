// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMergeConditions(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	ok := (&findings{}).conditions()
	at := func(conditions []corev1.NamespaceCondition, time metav1.Time) []corev1.NamespaceCondition {
		merged, _ := mergeConditions(nil, conditions, time)
		return merged
	}
	failing := (&findings{content: []error{errors.New("b"), errors.New("a")}}).conditions()
	other := corev1.NamespaceCondition{Type: "Other", Status: corev1.ConditionTrue}
	tests := []struct {
		name    string
		old     []corev1.NamespaceCondition
		found   []corev1.NamespaceCondition
		want    []corev1.NamespaceCondition
		changed bool
	}{
		{"first", nil, ok, at(ok, now), true},
		{"same", at(ok, before), ok, at(ok, before), false},
		{"conditions of others stay", append([]corev1.NamespaceCondition{other}, at(ok, before)...), ok, append([]corev1.NamespaceCondition{other}, at(ok, before)...), false},
		{
			"fails", at(ok, before), failing,
			func() []corev1.NamespaceCondition {
				want := at(ok, before)
				want[2].Status, want[2].LastTransitionTime = corev1.ConditionTrue, now
				want[2].Reason, want[2].Message = "ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: a, b"
				return want
			}(), true,
		},
		{
			"another message", at(failing, before), (&findings{content: []error{errors.New("c")}}).conditions(),
			func() []corev1.NamespaceCondition {
				want := at(failing, before)
				want[2].Message = "Failed to delete all resource types, 1 remaining: c"
				return want
			}(), true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old := append([]corev1.NamespaceCondition(nil), test.old...)
			got, changed := mergeConditions(test.old, test.found, now)
			if diff := cmp.Diff(test.want, got); diff != "" || changed != test.changed {
				t.Errorf("changed %v, want %v; (-want +got):\n%s", changed, test.changed, diff)
			}
			if diff := cmp.Diff(old, test.old); diff != "" {
				t.Errorf("the old conditions were written to:\n%s", diff)
			}
		})
	}
}
