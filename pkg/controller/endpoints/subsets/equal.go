// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package subsets

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

var equalities = newEqualities()

func newEqualities() conversion.Equalities {
	equalities := equality.Semantic.Copy()
	// A pod that changes elsewhere is the same endpoint. Older writers noted
	// its resourceVersion.
	err := equalities.AddFunc(func(a, b corev1.ObjectReference) bool {
		a.ResourceVersion, b.ResourceVersion = "", ""
		return a == b
	})
	if err != nil {
		panic(err) // the function above has a wrong signature
	}
	return equalities
}

// Equal says whether the subsets hold the same endpoints in the same order,
// whatever revisions of the pods they name.
func Equal(a, b []corev1.EndpointSubset) bool {
	return equalities.DeepEqual(a, b)
}

// SameContents says whether the subsets hold the same endpoints: as they are,
// or after the first, which somebody else may have written, is repacked.
func SameContents(foreign, canonical []corev1.EndpointSubset) bool {
	return Equal(foreign, canonical) || Equal(Repack(foreign), canonical)
}
