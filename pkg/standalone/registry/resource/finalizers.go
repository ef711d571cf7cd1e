// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FinalizerNames refuses names without a domain, but for the three that
// Kubernetes itself uses. path is that of the metadata.
func FinalizerNames(path *field.Path, finalizers []string) field.ErrorList {
	var errs field.ErrorList
	for i, finalizer := range finalizers {
		errs = append(errs, FinalizerName(path.Child("finalizers").Index(i), finalizer)...)
	}
	return errs
}

// FinalizerName is FinalizerNames for one of them, at path.
func FinalizerName(path *field.Path, finalizer string) field.ErrorList {
	switch finalizer {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if strings.Contains(finalizer, "/") {
		return nil
	}
	return Invalid(path, finalizer, []string{"name is neither a standard finalizer name nor is it fully qualified"})
}
