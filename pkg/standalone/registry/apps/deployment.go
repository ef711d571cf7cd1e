// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newDeployments(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	storage, err := resource.NewStorage(getter, resource.Kind[*appsv1.Deployment]{
		Version:      appsv1.SchemeGroupVersion,
		Kind:         "Deployment",
		Resource:     "deployments",
		Singular:     "deployment",
		ShortNames:   []string{"deploy"},
		Categories:   []string{"all"},
		Namespaced:   true,
		New:          func() *appsv1.Deployment { return &appsv1.Deployment{} },
		NewList:      func() runtime.Object { return &appsv1.DeploymentList{} },
		Table:        withScales(clock.RealClock{}, NewDeploymentTable(clock.RealClock{})),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*appsv1.Deployment]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, deployment *appsv1.Deployment) {
				deployment.Generation = 1
				deployment.Status = appsv1.DeploymentStatus{}
			},
			PrepareForUpdate: func(_ context.Context, deployment, old *appsv1.Deployment) {
				deployment.Status = old.Status
				// Annotations go on to the ReplicaSets, so that they count.
				if !apiequality.Semantic.DeepEqual(deployment.Spec, old.Spec) ||
					!apiequality.Semantic.DeepEqual(deployment.Annotations, old.Annotations) {
					deployment.Generation = old.Generation + 1
				}
			},
			Validate: func(_ context.Context, deployment *appsv1.Deployment) field.ErrorList {
				return validateDeployment(&deployment.Spec)
			},
			ValidateUpdate: func(_ context.Context, deployment, old *appsv1.Deployment) field.ErrorList {
				return append(validateDeployment(&deployment.Spec), apivalidation.ValidateImmutableField(
					deployment.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
			},
			Warnings: func(_ context.Context, deployment, old *appsv1.Deployment) []string {
				if old != nil {
					return nil
				}
				return nameWarning(deployment.Name)
			},
		},
		Status: &resource.Rules[*appsv1.Deployment]{
			Reset: resource.Fields([]string{"spec"}, []string{"metadata", "labels"}),
			PrepareForUpdate: func(_ context.Context, deployment, old *appsv1.Deployment) {
				deployment.Spec = old.Spec
				deployment.Labels = old.Labels
			},
			ValidateUpdate: func(_ context.Context, deployment, old *appsv1.Deployment) field.ErrorList {
				return validateDeploymentStatus(&deployment.Status, &old.Status)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return addScale(storage, "deployments", scaling[*appsv1.Deployment]{
		replicas: func(deployment *appsv1.Deployment) **int32 { return &deployment.Spec.Replicas },
		observed: func(deployment *appsv1.Deployment) (int32, *metav1.LabelSelector) {
			return deployment.Status.Replicas, deployment.Spec.Selector
		},
	}), nil
}

func validateDeployment(spec *appsv1.DeploymentSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := nonnegative(spec.Replicas, path.Child("replicas"))
	errs = append(errs, validateSelection(spec.Selector, &spec.Template, "deployment", "ReplicaSet", path)...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy, path.Child("strategy"))...)
	errs = append(errs, nonnegative(&spec.MinReadySeconds, path.Child("minReadySeconds"))...)
	errs = append(errs, nonnegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		errs = append(errs, nonnegative(deadline, path.Child("progressDeadlineSeconds"))...)
		if *deadline <= spec.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateDeploymentStrategy(strategy *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	rolling := path.Child("rollingUpdate")
	switch strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if strategy.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, strategy.Type,
			[]appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
	if strategy.RollingUpdate == nil {
		return field.ErrorList{field.Required(rolling, "")}
	}
	unavailable, surge := valueOf(strategy.RollingUpdate.MaxUnavailable), valueOf(strategy.RollingUpdate.MaxSurge)
	errs := validateShare(unavailable, rolling.Child("maxUnavailable"))
	errs = append(errs, validateShare(surge, rolling.Child("maxSurge"))...)
	if shareValue(unavailable) == 0 && shareValue(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, validateAtMostAll(unavailable, rolling.Child("maxUnavailable"))...)
}

func validateDeploymentStatus(status, old *appsv1.DeploymentStatus) field.ErrorList {
	total := int64(status.Replicas)
	errs := validateCounts([]count{
		{"observedGeneration", status.ObservedGeneration},
		{"replicas", total},
		{"updatedReplicas", int64(status.UpdatedReplicas)},
		{"readyReplicas", int64(status.ReadyReplicas)},
		{"availableReplicas", int64(status.AvailableReplicas)},
		{"unavailableReplicas", int64(status.UnavailableReplicas)},
	}, map[string]int64{"updatedReplicas": total, "readyReplicas": total, "availableReplicas": total})
	path := field.NewPath("status")
	errs = append(errs, nonnegative(status.TerminatingReplicas, path.Child("terminatingReplicas"))...)
	if status.AvailableReplicas > status.ReadyReplicas {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), status.AvailableReplicas, "cannot be greater than readyReplicas"))
	}
	return append(errs, validateCollisions(status.CollisionCount, old.CollisionCount)...)
}
