// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/pod"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// validateSelection checks what every workload has: a selector that is not
// empty, and a template whose pods it selects and that run on and on. lower and
// kind name the workload in messages.
func validateSelection(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, lower, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path.Child("selector"), selector, "empty selector is invalid for "+lower))
		}
	}
	path = path.Child("template")
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil && !parsed.Empty() && !parsed.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, pod.ValidateTemplate(template, path)...)
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// nonnegative checks a number that may be absent.
func nonnegative[N ~int32 | ~int64](value *N, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), path)
}

// count is a number of a status.
type count struct {
	name  string
	value int64
}

// validateCounts checks that the numbers of a status are not negative, and not
// more than the total where there is one.
func validateCounts(counts []count, limited map[string]int64) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	for _, c := range counts {
		errs = append(errs, apivalidation.ValidateNonnegativeField(c.value, path.Child(c.name))...)
	}
	for _, c := range counts {
		if limit, ok := limited[c.name]; ok && c.value > limit {
			errs = append(errs, field.Invalid(path.Child(c.name), c.value, "cannot be greater than status.replicas"))
		}
	}
	return errs
}

// validateCollisions keeps the count of hash collisions from going back, which
// would make the next collision come again.
func validateCollisions(value, old *int32) field.ErrorList {
	var now, before int32
	if value != nil {
		now = *value
	}
	if old != nil {
		before = *old
	}
	path := field.NewPath("status", "collisionCount")
	errs := apivalidation.ValidateNonnegativeField(int64(now), path)
	if now < before {
		errs = append(errs, field.Invalid(path, now, "cannot be decremented"))
	}
	return errs
}

// validateShare checks a number of pods or a percentage of them.
func validateShare(share intstr.IntOrString, path *field.Path) field.ErrorList {
	if share.Type == intstr.String {
		return resource.Invalid(path, share, validation.IsValidPercent(share.StrVal))
	}
	return apivalidation.ValidateNonnegativeField(int64(share.IntValue()), path)
}

// validateAtMostAll refuses percentages above 100.
func validateAtMostAll(share intstr.IntOrString, path *field.Path) field.ErrorList {
	if share.Type == intstr.String && shareValue(share) > 100 {
		return field.ErrorList{field.Invalid(path, share, "must not be greater than 100%")}
	}
	return nil
}

// shareValue is the number or the percentage; 0 for what is neither.
func shareValue(share intstr.IntOrString) int {
	if share.Type != intstr.String {
		return share.IntValue()
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(share.StrVal, "%"))
	if err != nil {
		return 0
	}
	return percent
}

// nameWarning is for kinds whose pods have host names made of their name.
func nameWarning(name string) []string {
	if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
		return []string{fmt.Sprintf("metadata.name: names and hostnames of Pods are made of it, so it should be a DNS label: %v", messages)}
	}
	return nil
}
