// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")

	strategy       = serviceStrategy{names.SimpleNameGenerator}
	statusStrategy = serviceStatusStrategy{strategy}

	_ rest.RESTCreateStrategy  = strategy
	_ rest.RESTUpdateStrategy  = strategy
	_ rest.RESTDeleteStrategy  = strategy
	_ rest.ResetFieldsStrategy = strategy
	_ rest.RESTUpdateStrategy  = statusStrategy
	_ rest.ResetFieldsStrategy = statusStrategy
)

// serviceStrategy is how services are created and updated.
type serviceStrategy struct {
	names.NameGenerator
}

// ObjectKinds and Recognizes implement runtime.ObjectTyper without a scheme:
// there is one kind.
func (serviceStrategy) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{serviceKind}, false, nil
}

func (serviceStrategy) Recognizes(kind schema.GroupVersionKind) bool { return kind == serviceKind }

func (serviceStrategy) NamespaceScoped() bool { return true }

func (serviceStrategy) AllowCreateOnUpdate(context.Context) bool { return true }

func (serviceStrategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize keeps internalTrafficPolicy off ExternalName Services, where it
// was once set by default: kube-apiserver stores it and hides it at each read.
func (serviceStrategy) Canonicalize(obj runtime.Object) {
	if spec := &obj.(*corev1.Service).Spec; spec.Type == corev1.ServiceTypeExternalName {
		spec.InternalTrafficPolicy = nil
	}
}

func (serviceStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"v1": fieldpath.NewSet(fieldpath.MakePathOrDie("status"))}
}

func (serviceStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(*corev1.Service).Status = corev1.ServiceStatus{}
}

func (serviceStrategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	service, old := obj.(*corev1.Service), oldObj.(*corev1.Service)
	service.Status = *old.Status.DeepCopy()
	dropUnused(service, old)
}

func (serviceStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validateCreate(obj.(*corev1.Service))
}

func (serviceStrategy) ValidateUpdate(_ context.Context, obj, oldObj runtime.Object) field.ErrorList {
	return validateUpdate(obj.(*corev1.Service), oldObj.(*corev1.Service))
}

func (serviceStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warnings(obj.(*corev1.Service))
}

func (serviceStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return warnings(obj.(*corev1.Service))
}

// serviceStatusStrategy is how services/status is updated.
type serviceStatusStrategy struct {
	serviceStrategy
}

func (serviceStatusStrategy) AllowCreateOnUpdate(context.Context) bool { return false }

func (serviceStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"v1": fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))}
}

func (serviceStatusStrategy) PrepareForUpdate(_ context.Context, obj, oldObj runtime.Object) {
	service, old := obj.(*corev1.Service), oldObj.(*corev1.Service)
	service.Spec = *old.Spec.DeepCopy()
}

func (serviceStatusStrategy) ValidateUpdate(_ context.Context, obj, oldObj runtime.Object) field.ErrorList {
	return validateStatusUpdate(obj.(*corev1.Service), oldObj.(*corev1.Service))
}

func (serviceStatusStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return statusWarnings(obj.(*corev1.Service))
}
