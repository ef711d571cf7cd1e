// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newDaemonSets(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*appsv1.DaemonSet]{
		Version:      appsv1.SchemeGroupVersion,
		Kind:         "DaemonSet",
		Resource:     "daemonsets",
		Singular:     "daemonset",
		ShortNames:   []string{"ds"},
		Categories:   []string{"all"},
		Namespaced:   true,
		New:          func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} },
		NewList:      func() runtime.Object { return &appsv1.DaemonSetList{} },
		Table:        NewDaemonSetTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*appsv1.DaemonSet]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, daemonSet *appsv1.DaemonSet) {
				daemonSet.Generation = 1
				daemonSet.Status = appsv1.DaemonSetStatus{}
				setTemplateGeneration(daemonSet, max(1, templateGeneration(daemonSet)))
			},
			PrepareForUpdate: prepareDaemonSetUpdate,
			Validate: func(_ context.Context, daemonSet *appsv1.DaemonSet) field.ErrorList {
				return validateDaemonSet(&daemonSet.Spec)
			},
			ValidateUpdate: func(_ context.Context, daemonSet, old *appsv1.DaemonSet) field.ErrorList {
				errs := apivalidation.ValidateImmutableField(daemonSet.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
				return append(errs, validateDaemonSet(&daemonSet.Spec)...)
			},
		},
		Status: &resource.Rules[*appsv1.DaemonSet]{
			Reset: resource.SpecField(),
			PrepareForUpdate: func(_ context.Context, daemonSet, old *appsv1.DaemonSet) {
				daemonSet.Spec = old.Spec
				setTemplateGeneration(daemonSet, templateGeneration(old))
			},
			ValidateUpdate: func(_ context.Context, daemonSet, old *appsv1.DaemonSet) field.ErrorList {
				return validateDaemonSetStatus(&daemonSet.Status, &old.Status)
			},
		},
	})
}

// prepareDaemonSetUpdate counts changes of the template by themselves, in an
// annotation: it was a field in the versions of this API before apps/v1.
func prepareDaemonSetUpdate(_ context.Context, daemonSet, old *appsv1.DaemonSet) {
	daemonSet.Status = old.Status
	generation := templateGeneration(old)
	if !apiequality.Semantic.DeepEqual(daemonSet.Spec.Template, old.Spec.Template) {
		generation++
	}
	setTemplateGeneration(daemonSet, generation)
	if !apiequality.Semantic.DeepEqual(daemonSet.Spec, old.Spec) {
		daemonSet.Generation = old.Generation + 1
	}
}

// templateGeneration is 0 if there is none, or none that makes sense.
func templateGeneration(daemonSet *appsv1.DaemonSet) int64 {
	generation, err := strconv.ParseInt(daemonSet.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

func setTemplateGeneration(daemonSet *appsv1.DaemonSet, generation int64) {
	if daemonSet.Annotations == nil {
		daemonSet.Annotations = map[string]string{}
	}
	daemonSet.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(generation, 10)
}

func validateDaemonSet(spec *appsv1.DaemonSetSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSelection(spec.Selector, &spec.Template, "daemonset", "DaemonSet", path)
	errs = append(errs, nonnegative(&spec.MinReadySeconds, path.Child("minReadySeconds"))...)
	errs = append(errs, validateDaemonSetStrategy(&spec.UpdateStrategy, path.Child("updateStrategy"))...)
	return append(errs, nonnegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
}

func validateDaemonSetStrategy(strategy *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch strategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, strategy.Type,
			[]appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType})}
	}
	path = path.Child("rollingUpdate")
	if strategy.RollingUpdate == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	unavailable, surge := valueOf(strategy.RollingUpdate.MaxUnavailable), valueOf(strategy.RollingUpdate.MaxSurge)
	errs := validateShare(unavailable, path.Child("maxUnavailable"))
	errs = append(errs, validateShare(surge, path.Child("maxSurge"))...)
	errs = append(errs, validateAtMostAll(unavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, validateAtMostAll(surge, path.Child("maxSurge"))...)
	switch {
	case shareValue(unavailable) != 0 && shareValue(surge) != 0:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	case shareValue(unavailable) == 0 && shareValue(surge) == 0:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validateDaemonSetStatus(status, old *appsv1.DaemonSetStatus) field.ErrorList {
	errs := validateCounts([]count{
		{"currentNumberScheduled", int64(status.CurrentNumberScheduled)},
		{"numberMisscheduled", int64(status.NumberMisscheduled)},
		{"desiredNumberScheduled", int64(status.DesiredNumberScheduled)},
		{"numberReady", int64(status.NumberReady)},
		{"observedGeneration", status.ObservedGeneration},
		{"updatedNumberScheduled", int64(status.UpdatedNumberScheduled)},
		{"numberAvailable", int64(status.NumberAvailable)},
		{"numberUnavailable", int64(status.NumberUnavailable)},
	}, nil)
	return append(errs, validateCollisions(status.CollisionCount, old.CollisionCount)...)
}
