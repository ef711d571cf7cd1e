// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func validate(namespace *corev1.Namespace) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&namespace.ObjectMeta, false, apivalidation.ValidateNamespaceName, path)
	errs = append(errs, resource.FinalizerNames(path, namespace.Finalizers)...)
	for _, finalizer := range namespace.Spec.Finalizers {
		errs = append(errs, validateFinalizer(string(finalizer), field.NewPath("spec", "finalizers"))...)
	}
	return errs
}

func validateMetaUpdate(namespace, before *corev1.Namespace) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMetaUpdate(&namespace.ObjectMeta, &before.ObjectMeta, path)
	return append(errs, resource.FinalizerNames(path, namespace.Finalizers)...)
}

// validatePhase keeps the phase in step with the deletion. The field is written
// "Phase" here because kube-apiserver's answer has it so.
func validatePhase(namespace *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	phase := namespace.Status.Phase
	switch {
	case namespace.DeletionTimestamp.IsZero() && phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !namespace.DeletionTimestamp.IsZero() && phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

func validateFinalizer(finalizer string, path *field.Path) field.ErrorList {
	return append(apivalidation.ValidateFinalizerName(finalizer, path), resource.FinalizerName(path, finalizer)...)
}
