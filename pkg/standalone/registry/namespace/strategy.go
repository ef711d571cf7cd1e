// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
)

// SetDefaults fills in what a namespace has on every read and write: its name
// as a label, which selectors of namespaces rely on, and a phase.
func SetDefaults(namespace *corev1.Namespace) {
	// With generateName there is no name yet when defaults are set; Canonicalize
	// sets the label then.
	if namespace.Name != "" {
		setNameLabel(namespace)
	}
	if namespace.Status.Phase == "" {
		namespace.Status.Phase = corev1.NamespaceActive
	}
}

func setNameLabel(namespace *corev1.Namespace) {
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	namespace.Labels[corev1.LabelMetadataName] = namespace.Name
}

// GetAttrs returns the labels and the selectable fields of a Namespace: those
// of the view, and "name", which kube-apiserver has besides "metadata.name".
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	labelSet, fieldSet, err := namespaces.GetAttrs(obj)
	if err != nil {
		return nil, nil, err
	}
	fieldSet["name"] = fieldSet["metadata.name"]
	return labelSet, fieldSet, nil
}

// specStrategy is for requests to the resource itself. Clients write metadata
// with it; spec.finalizers changes only through finalize after the creation.
type specStrategy struct{}

var (
	_ rest.RESTCreateStrategy  = specStrategy{}
	_ rest.RESTUpdateStrategy  = specStrategy{}
	_ rest.RESTDeleteStrategy  = specStrategy{}
	_ rest.ResetFieldsStrategy = specStrategy{}
)

// ObjectKinds implements runtime.ObjectTyper.
func (specStrategy) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := obj.(*corev1.Namespace); !ok {
		return nil, false, fmt.Errorf("not a Namespace: %T", obj)
	}
	return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Namespace")}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (specStrategy) Recognizes(kind schema.GroupVersionKind) bool {
	return kind == corev1.SchemeGroupVersion.WithKind("Namespace")
}

func (specStrategy) GenerateName(base string) string {
	return names.SimpleNameGenerator.GenerateName(base)
}

func (specStrategy) NamespaceScoped() bool                                     { return false }
func (specStrategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (specStrategy) AllowUnconditionalUpdate(context.Context) bool             { return true }
func (specStrategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (specStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (specStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"v1": fieldpath.NewSet(fieldpath.MakePathOrDie("status"))}
}

func (specStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	namespace.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	// No default, because it goes during the life of the object.
	if !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		namespace.Spec.Finalizers = append(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

func (specStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	namespace, before := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	namespace.Spec.Finalizers = before.Spec.Finalizers
	namespace.Status = before.Status
}

func (specStrategy) Canonicalize(obj runtime.Object) { setNameLabel(obj.(*corev1.Namespace)) }

func (specStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*corev1.Namespace))
}

func (specStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	namespace := obj.(*corev1.Namespace)
	return append(validate(namespace), validateMetaUpdate(namespace, old.(*corev1.Namespace))...)
}

// statusStrategy is for the status subresource.
type statusStrategy struct{ specStrategy }

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"v1": fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))}
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	namespace := obj.(*corev1.Namespace)
	return append(validateMetaUpdate(namespace, old.(*corev1.Namespace)), validatePhase(namespace)...)
}

// finalizeStrategy is for the finalize subresource.
type finalizeStrategy struct{ specStrategy }

func (finalizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

func (finalizeStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	namespace := obj.(*corev1.Namespace)
	errs := validateMetaUpdate(namespace, old.(*corev1.Namespace))
	path := field.NewPath("spec", "finalizers")
	for i, finalizer := range namespace.Spec.Finalizers {
		errs = append(errs, validateFinalizer(string(finalizer), path.Index(i))...)
	}
	return errs
}
