// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEstablishEarlier(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name        string
		established time.Duration // after the creation
		want        time.Duration
	}{
		{name: "at once", established: time.Second, want: -settling},
		{name: "shifted already", established: -settling, want: -settling},
		{name: "when its names became free", established: time.Minute, want: time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
			definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, LastTransitionTime: metav1.NewTime(created)},
				{Type: apiextensionsv1.Established, LastTransitionTime: metav1.NewTime(created.Add(tc.established))},
			}
			if _, err := establishEarlier(definition); err != nil {
				t.Fatal(err)
			}
			if got := definition.Status.Conditions[1].LastTransitionTime.Sub(created); got != tc.want {
				t.Errorf("established %v after the creation, want %v", got, tc.want)
			}
			if other := definition.Status.Conditions[0].LastTransitionTime; !other.Time.Equal(created) {
				t.Errorf("another condition has changed at %v", other)
			}
		})
	}
	if object, err := establishEarlier("a tombstone"); object != "a tombstone" || err != nil {
		t.Errorf("got %v, %v", object, err)
	}
}
