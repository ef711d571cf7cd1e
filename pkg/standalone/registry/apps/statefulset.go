// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

func newStatefulSets(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	storage, err := resource.NewStorage(getter, resource.Kind[*appsv1.StatefulSet]{
		Version:      appsv1.SchemeGroupVersion,
		Kind:         "StatefulSet",
		Resource:     "statefulsets",
		Singular:     "statefulset",
		ShortNames:   []string{"sts"},
		Categories:   []string{"all"},
		Namespaced:   true,
		New:          func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} },
		NewList:      func() runtime.Object { return &appsv1.StatefulSetList{} },
		Table:        withScales(clock.RealClock{}, NewStatefulSetTable(clock.RealClock{})),
		ValidateName: apivalidation.NameIsDNSLabel,
		Rules: resource.Rules[*appsv1.StatefulSet]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, set *appsv1.StatefulSet) {
				set.Generation = 1
				set.Status = appsv1.StatefulSetStatus{}
			},
			PrepareForUpdate: func(_ context.Context, set, old *appsv1.StatefulSet) {
				set.Status = old.Status
				if !apiequality.Semantic.DeepEqual(set.Spec, old.Spec) {
					set.Generation = old.Generation + 1
				}
			},
			Validate: func(_ context.Context, set *appsv1.StatefulSet) field.ErrorList {
				errs := validateStatefulSet(&set.Spec)
				if set.Spec.ServiceName != "" {
					errs = append(errs, resource.DNSLabel(field.NewPath("spec", "serviceName"), set.Spec.ServiceName)...)
				}
				return errs
			},
			ValidateUpdate: validateStatefulSetUpdate,
		},
		Status: &resource.Rules[*appsv1.StatefulSet]{
			Reset:            resource.SpecField(),
			PrepareForUpdate: func(_ context.Context, set, old *appsv1.StatefulSet) { set.Spec = old.Spec },
			ValidateUpdate: func(_ context.Context, set, old *appsv1.StatefulSet) field.ErrorList {
				return validateStatefulSetStatus(&set.Status, &old.Status)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return addScale(storage, "statefulsets", scaling[*appsv1.StatefulSet]{
		replicas: func(set *appsv1.StatefulSet) **int32 { return &set.Spec.Replicas },
		observed: func(set *appsv1.StatefulSet) (int32, *metav1.LabelSelector) {
			return set.Status.Replicas, set.Spec.Selector
		},
	}), nil
}

func validateStatefulSet(spec *appsv1.StatefulSetSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	switch spec.PodManagementPolicy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), spec.PodManagementPolicy,
			fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	errs = append(errs, validateStatefulSetStrategy(&spec.UpdateStrategy, path.Child("updateStrategy"))...)
	if retention := spec.PersistentVolumeClaimRetentionPolicy; retention != nil {
		retentionPath := path.Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, validateRetention(retention.WhenDeleted, retentionPath.Child("whenDeleted"))...)
		errs = append(errs, validateRetention(retention.WhenScaled, retentionPath.Child("whenScaled"))...)
	}
	errs = append(errs, nonnegative(spec.Replicas, path.Child("replicas"))...)
	errs = append(errs, nonnegative(&spec.MinReadySeconds, path.Child("minReadySeconds"))...)
	if spec.Ordinals != nil {
		errs = append(errs, nonnegative(&spec.Ordinals.Start, path.Child("ordinals.start"))...)
	}
	return append(errs, validateSelection(spec.Selector, asMounted(spec), "statefulset", "StatefulSet", path)...)
}

// asMounted returns the template as the pods will have it: with a volume for
// each claim, and without the names that the controller sets.
func asMounted(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	template := spec.Template.DeepCopy()
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		template.Spec.Volumes = slices.DeleteFunc(template.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == name })
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	return template
}

func validateRetention(policy appsv1.PersistentVolumeClaimRetentionPolicyType, path *field.Path) field.ErrorList {
	return resource.OneOf(path, policy, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

func validateStatefulSetStrategy(strategy *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	rolling := strategy.RollingUpdate
	switch strategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if rolling != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), rolling,
				fmt.Sprintf("only allowed for updateStrategy '%s'", appsv1.RollingUpdateStatefulSetStrategyType))}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
	default:
		return field.ErrorList{field.Invalid(path, strategy, fmt.Sprintf("must be '%s' or '%s'",
			appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))}
	}
	if rolling == nil {
		return nil
	}
	path = path.Child("rollingUpdate")
	errs := nonnegative(rolling.Partition, path.Child("partition"))
	if unavailable := rolling.MaxUnavailable; unavailable != nil {
		path = path.Child("maxUnavailable")
		errs = append(errs, validateShare(*unavailable, path)...)
		if shareValue(*unavailable) == 0 {
			errs = append(errs, field.Invalid(path, *unavailable, "cannot be 0"))
		}
		errs = append(errs, validateAtMostAll(*unavailable, path)...)
	}
	return errs
}

func validateStatefulSetUpdate(_ context.Context, set, old *appsv1.StatefulSet) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateStatefulSet(&set.Spec)
	errs = append(errs, apivalidation.ValidateImmutableField(set.Spec.Selector, old.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(set.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates, path.Child("volumeClaimTemplates"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(set.Spec.ServiceName, old.Spec.ServiceName, path.Child("serviceName"))...)
	return append(errs, apivalidation.ValidateImmutableField(set.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy, path.Child("podManagementPolicy"))...)
}

func validateStatefulSetStatus(status, old *appsv1.StatefulSetStatus) field.ErrorList {
	total := int64(status.Replicas)
	errs := validateCounts([]count{
		{"replicas", total},
		{"readyReplicas", int64(status.ReadyReplicas)},
		{"currentReplicas", int64(status.CurrentReplicas)},
		{"updatedReplicas", int64(status.UpdatedReplicas)},
		{"availableReplicas", int64(status.AvailableReplicas)},
		{"observedGeneration", status.ObservedGeneration},
	}, map[string]int64{"readyReplicas": total, "currentReplicas": total, "updatedReplicas": total, "availableReplicas": total})
	if status.AvailableReplicas > status.ReadyReplicas {
		errs = append(errs, field.Invalid(field.NewPath("status", "availableReplicas"), status.AvailableReplicas,
			"cannot be greater than status.readyReplicas"))
	}
	return append(errs, validateCollisions(status.CollisionCount, old.CollisionCount)...)
}
