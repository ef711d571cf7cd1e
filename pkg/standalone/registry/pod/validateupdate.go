// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// updatableFields is part of the answer, because it is all that helps.
const updatableFields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validateUpdate refuses changes of a spec that somebody has begun to run.
func validateUpdate(_ context.Context, pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := validatePod(pod)
	if len(pod.Spec.Containers) != len(old.Spec.Containers) {
		return append(errs, field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return append(errs, field.Forbidden(path.Child("initContainers"), "pod updates may not add or remove containers"))
	}
	errs = append(errs, validateDeadlineUpdate(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	if !onlyAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations) {
		errs = append(errs, field.Forbidden(path.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
	}
	for i, gate := range pod.Spec.SchedulingGates {
		if !slices.Contains(old.Spec.SchedulingGates, gate) {
			errs = append(errs, field.Forbidden(path.Child("schedulingGates").Index(i).Child("name"), "only deletion is allowed, but found new scheduling gate '"+gate.Name+"'"))
		}
	}

	// What is left when all that may change is as it was.
	rest := pod.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.SchedulingGates = old.Spec.SchedulingGates
	rest.Tolerations = old.Spec.Tolerations
	if !apiequality.Semantic.DeepEqual(rest, &old.Spec) {
		errs = append(errs, field.Forbidden(path, "pod updates may not change fields other than "+updatableFields+"\n"+diff.Diff(old.Spec, *rest)))
	}
	return errs
}

// validateDeadlineUpdate lets a deadline come, and come closer.
func validateDeadlineUpdate(deadline, old *int64, path *field.Path) field.ErrorList {
	switch {
	case deadline == nil && old == nil:
		return nil
	case deadline == nil:
		return field.ErrorList{field.Invalid(path, deadline, "must not update from a positive integer to nil value")}
	case *deadline < 0 || *deadline > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *deadline, validation.InclusiveRangeError(0, math.MaxInt32))}
	case old != nil && *old < *deadline:
		return field.ErrorList{field.Invalid(path, *deadline, "must be less than or equal to previous value")}
	}
	return nil
}

func onlyAddedTolerations(tolerations, old []corev1.Toleration) bool {
	for _, before := range old {
		kept := slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool {
			toleration.TolerationSeconds = before.TolerationSeconds
			return toleration == before
		})
		if !kept {
			return false
		}
	}
	return true
}

func validateStatusUpdate(_ context.Context, pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("status")
	status := &pod.Status
	var errs field.ErrorList
	for i := range status.Conditions {
		condition, item := &status.Conditions[i], path.Child("conditions").Index(i)
		if condition.ObservedGeneration < 0 {
			errs = append(errs, field.Invalid(item.Child("observedGeneration"), condition.ObservedGeneration, "must be a non-negative integer"))
		}
		errs = append(errs, resource.QualifiedName(item.Child("type"), string(condition.Type))...)
	}
	if status.NominatedNodeName != "" && status.NominatedNodeName != old.Status.NominatedNodeName {
		errs = append(errs, resource.NodeName(path.Child("nominatedNodeName"), status.NominatedNodeName)...)
	}
	if status.ObservedGeneration < 0 {
		errs = append(errs, field.Invalid(path.Child("observedGeneration"), status.ObservedGeneration, "must be a non-negative integer"))
	}
	errs = append(errs, apivalidation.ValidateImmutableField(status.QOSClass, old.Status.QOSClass, path.Child("qosClass"))...)
	return append(errs, validatePodIPs(status, &old.Status, path)...)
}

// validatePodIPs checks the addresses of the pod and of its host: at most one
// of each family, the single field equal to the first.
func validatePodIPs(status, old *corev1.PodStatus, path *field.Path) field.ErrorList {
	pods, stored := make([]string, 0, len(status.PodIPs)), make([]string, 0, len(old.PodIPs))
	for _, ip := range status.PodIPs {
		pods = append(pods, ip.IP)
	}
	for _, ip := range old.PodIPs {
		stored = append(stored, ip.IP)
	}
	errs := validateIPs(pods, stored, path.Child("podIPs"))
	switch {
	case (status.PodIP == "") != (len(pods) == 0):
		errs = append(errs, field.Invalid(path.Child("podIPs"), status.PodIPs, "podIP and podIPs must either both be set or both be unset"))
	case len(pods) > 0 && status.PodIP != pods[0]:
		errs = append(errs, field.Invalid(path.Child("podIPs").Index(0).Child("ip"), pods[0], "must be equal to `podIP`"))
	}

	hosts, stored := make([]string, 0, len(status.HostIPs)), make([]string, 0, len(old.HostIPs))
	for _, ip := range status.HostIPs {
		hosts = append(hosts, ip.IP)
	}
	for _, ip := range old.HostIPs {
		stored = append(stored, ip.IP)
	}
	errs = append(errs, validateIPs(hosts, stored, path.Child("hostIPs"))...)
	if len(hosts) > 0 && status.HostIP != hosts[0] {
		errs = append(errs, field.Invalid(path.Child("hostIPs").Index(0).Child("ip"), hosts[0], "must be equal to `hostIP`"))
	}
	return errs
}

func validateIPs(ips, stored []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		errs = append(errs, resource.IP(path.Index(i), ip, stored...)...)
	}
	if len(ips) > 1 {
		if dual, err := utilnet.IsDualStackIPStrings(ips); err == nil && (!dual || len(ips) > 2) {
			errs = append(errs, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
		}
	}
	return errs
}
