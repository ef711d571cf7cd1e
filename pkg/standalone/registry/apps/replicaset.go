// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newReplicaSets(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	storage, err := resource.NewStorage(getter, resource.Kind[*appsv1.ReplicaSet]{
		Version:      appsv1.SchemeGroupVersion,
		Kind:         "ReplicaSet",
		Resource:     "replicasets",
		Singular:     "replicaset",
		ShortNames:   []string{"rs"},
		Categories:   []string{"all"},
		Namespaced:   true,
		New:          func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
		NewList:      func() runtime.Object { return &appsv1.ReplicaSetList{} },
		Table:        withScales(clock.RealClock{}, NewReplicaSetTable(clock.RealClock{})),
		Attrs:        replicaSetAttrs,
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*appsv1.ReplicaSet]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, replicaSet *appsv1.ReplicaSet) {
				replicaSet.Generation = 1
				replicaSet.Status = appsv1.ReplicaSetStatus{}
			},
			PrepareForUpdate: func(_ context.Context, replicaSet, old *appsv1.ReplicaSet) {
				replicaSet.Status = old.Status
				if !apiequality.Semantic.DeepEqual(replicaSet.Spec, old.Spec) {
					replicaSet.Generation = old.Generation + 1
				}
			},
			Validate: func(_ context.Context, replicaSet *appsv1.ReplicaSet) field.ErrorList {
				return validateReplicaSet(&replicaSet.Spec)
			},
			ValidateUpdate: func(_ context.Context, replicaSet, old *appsv1.ReplicaSet) field.ErrorList {
				return append(validateReplicaSet(&replicaSet.Spec), apivalidation.ValidateImmutableField(
					replicaSet.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Warnings: func(_ context.Context, replicaSet, old *appsv1.ReplicaSet) []string {
				if old != nil {
					return nil
				}
				return nameWarning(replicaSet.Name)
			},
		},
		Status: &resource.Rules[*appsv1.ReplicaSet]{
			Reset: resource.SpecField(),
			PrepareForUpdate: func(_ context.Context, replicaSet, old *appsv1.ReplicaSet) {
				replicaSet.Spec = old.Spec
			},
			ValidateUpdate: func(_ context.Context, replicaSet, _ *appsv1.ReplicaSet) field.ErrorList {
				return validateReplicaSetStatus(&replicaSet.Status)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return addScale(storage, "replicasets", scaling[*appsv1.ReplicaSet]{
		replicas: func(replicaSet *appsv1.ReplicaSet) **int32 { return &replicaSet.Spec.Replicas },
		observed: func(replicaSet *appsv1.ReplicaSet) (int32, *metav1.LabelSelector) {
			return replicaSet.Status.Replicas, replicaSet.Spec.Selector
		},
	}), nil
}

func replicaSetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	replicaSet, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return nil, nil, fmt.Errorf("not a ReplicaSet: %T", obj)
	}
	return replicaSet.Labels, fields.Set{
		"metadata.name":      replicaSet.Name,
		"metadata.namespace": replicaSet.Namespace,
		"status.replicas":    strconv.Itoa(int(replicaSet.Status.Replicas)),
	}, nil
}

func validateReplicaSet(spec *appsv1.ReplicaSetSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := nonnegative(spec.Replicas, path.Child("replicas"))
	errs = append(errs, nonnegative(&spec.MinReadySeconds, path.Child("minReadySeconds"))...)
	// The message says deployment, as that of kube-apiserver does.
	return append(errs, validateSelection(spec.Selector, &spec.Template, "deployment", "ReplicaSet", path)...)
}

func validateReplicaSetStatus(status *appsv1.ReplicaSetStatus) field.ErrorList {
	total := int64(status.Replicas)
	errs := validateCounts([]count{
		{"replicas", total},
		{"fullyLabeledReplicas", int64(status.FullyLabeledReplicas)},
		{"readyReplicas", int64(status.ReadyReplicas)},
		{"availableReplicas", int64(status.AvailableReplicas)},
		{"observedGeneration", status.ObservedGeneration},
	}, map[string]int64{"fullyLabeledReplicas": total, "readyReplicas": total, "availableReplicas": total})
	path := field.NewPath("status")
	errs = append(errs, nonnegative(status.TerminatingReplicas, path.Child("terminatingReplicas"))...)
	if status.AvailableReplicas > status.ReadyReplicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), status.AvailableReplicas, "cannot be greater than readyReplicas"))
	}
	return errs
}
