// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func validateCreate(_ context.Context, pod *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := validatePod(pod)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

func validatePod(pod *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSpec(&pod.Spec, path)
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*grace, path.Child("terminationGracePeriodSeconds"))...)
	}
	return errs
}

// ValidateTemplate checks the pod template of a workload.
func ValidateTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateSpec(&template.Spec, path.Child("spec"))...)
	if len(template.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

func validateSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.TerminationGracePeriodSeconds == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	}
	volumes, volumeErrs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, volumeErrs...)
	errs = append(errs, validateContainers(spec, volumes, path)...)
	errs = append(errs, resource.OneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, resource.OneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	for i, secret := range spec.ImagePullSecrets {
		if secret.Name == "" {
			errs = append(errs, field.Required(path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, resource.QualifiedName(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType))...)
	}
	errs = append(errs, validateSchedulingGates(spec.SchedulingGates, path.Child("schedulingGates"))...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateNames(spec, path)...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil && (*deadline < 1 || *deadline > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *deadline, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	for i, alias := range spec.HostAliases {
		aliasPath := path.Child("hostAliases").Index(i)
		errs = append(errs, resource.IP(aliasPath.Child("ip"), alias.IP)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, resource.Invalid(aliasPath.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	return append(errs, validateAmounts(spec.Overhead, path.Child("overhead"))...)
}

// validateNames checks the fields that name something else, or become a name.
func validateNames(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ServiceAccountName != "" {
		errs = append(errs, resource.Invalid(path.Child("serviceAccountName"), spec.ServiceAccountName,
			apivalidation.ValidateServiceAccountName(spec.ServiceAccountName, false))...)
	}
	if spec.NodeName != "" {
		errs = append(errs, resource.NodeName(path.Child("nodeName"), spec.NodeName)...)
	}
	if spec.Hostname != "" {
		errs = append(errs, resource.DNSLabel(path.Child("hostname"), spec.Hostname)...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, resource.DNSLabel(path.Child("subdomain"), spec.Subdomain)...)
	}
	if spec.PriorityClassName != "" {
		errs = append(errs, resource.Invalid(path.Child("priorityClassName"), spec.PriorityClassName,
			apivalidation.NameIsDNSSubdomain(spec.PriorityClassName, false))...)
	}
	if spec.RuntimeClassName != nil {
		errs = append(errs, resource.Invalid(path.Child("runtimeClassName"), *spec.RuntimeClassName,
			apivalidation.NameIsDNSSubdomain(*spec.RuntimeClassName, false))...)
	}
	return errs
}

func validateSchedulingGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, gate := range gates {
		errs = append(errs, resource.QualifiedName(path.Index(i), gate.Name)...)
		if seen[gate.Name] {
			errs = append(errs, field.Duplicate(path.Index(i), gate.Name))
		}
		seen[gate.Name] = true
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		toleration, item := &tolerations[i], path.Index(i)
		if toleration.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, item.Child("key"))...)
		} else if toleration.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(item.Child("operator"), toleration.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(item.Child("effect"), toleration.Effect,
				"effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch toleration.Operator {
		case corev1.TolerationOpEqual, "":
			errs = append(errs, resource.Invalid(item.Child("operator"), toleration.Value, validation.IsValidLabelValue(toleration.Value))...)
		case corev1.TolerationOpExists:
			if toleration.Value != "" {
				errs = append(errs, field.Invalid(item.Child("operator"), toleration.Value, "value must be empty when `operator` is 'Exists'"))
			}
		default:
			errs = append(errs, field.NotSupported(item.Child("operator"), toleration.Operator,
				[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if toleration.Effect != "" {
			errs = append(errs, ValidateTaintEffect(toleration.Effect, item.Child("effect"))...)
		}
	}
	return errs
}

// ValidateTaintEffect checks the effect of a taint or of a toleration.
func ValidateTaintEffect(effect corev1.TaintEffect, path *field.Path) field.ErrorList {
	return resource.OneOf(path, effect,
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range constraints {
		constraint, item := &constraints[i], path.Index(i)
		if constraint.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(item.Child("maxSkew"), constraint.MaxSkew, "must be greater than zero"))
		}
		if constraint.TopologyKey == "" {
			errs = append(errs, field.Required(item.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, resource.OneOf(item.Child("whenUnsatisfiable"), constraint.WhenUnsatisfiable,
			corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		errs = append(errs, metav1validation.ValidateLabelSelector(constraint.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, item.Child("labelSelector"))...)
	}
	return errs
}
