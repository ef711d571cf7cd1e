// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func prepareForCreate(_ context.Context, pod *corev1.Pod) {
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type:               corev1.PodScheduled,
			Status:             corev1.ConditionFalse,
			LastTransitionTime: metav1.Now(),
			Reason:             corev1.PodReasonSchedulingGated,
			Message:            "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

func prepareForUpdate(_ context.Context, pod, old *corev1.Pod) {
	pod.Status = old.Status
	if !apiequality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation++
	}
}

func prepareForStatusUpdate(_ context.Context, pod, old *corev1.Pod) {
	pod.Spec = old.Spec
	pod.DeletionTimestamp = nil // the one of the old object comes back
	// Who may write the status must not give the pod to other owners.
	pod.OwnerReferences = old.OwnerReferences
	// An old client drops what it does not know.
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = old.Status.QOSClass
	}
	if pod.Status.ResourceClaimStatuses == nil {
		pod.Status.ResourceClaimStatuses = old.Status.ResourceClaimStatuses
	}
	if pod.Status.ExtendedResourceClaimStatus == nil {
		pod.Status.ExtendedResourceClaimStatus = old.Status.ExtendedResourceClaimStatus
	}
	keepObservedGenerations(&pod.Status, &old.Status)
}

// keepObservedGenerations keeps the generations that an old client drops: that
// of the status, and of each condition.
func keepObservedGenerations(status, old *corev1.PodStatus) {
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = old.ObservedGeneration
	}
	observed := map[corev1.PodConditionType]int64{}
	for i := range old.Conditions {
		observed[old.Conditions[i].Type] = old.Conditions[i].ObservedGeneration
	}
	for i := range status.Conditions {
		if status.Conditions[i].ObservedGeneration == 0 {
			status.Conditions[i].ObservedGeneration = observed[status.Conditions[i].Type]
		}
	}
}

// gracePeriod is what the request or else the pod says; none where no kubelet
// has anything to stop.
func gracePeriod(pod *corev1.Pod, options *metav1.DeleteOptions) bool {
	var period int64
	switch {
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

func warnings(_ context.Context, pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	if messages := validation.IsDNS1123Label(pod.Name); len(messages) > 0 {
		return []string{fmt.Sprintf("metadata.name: the hostname of the Pod is made of it, so it should be a DNS label: %v", messages)}
	}
	return nil
}

// qosClass sorts pods by what they reserve: Guaranteed if every container has
// limits for CPU and memory that equal its requests, BestEffort if none has
// any, else Burstable.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	limited := true
	add := func(resources *corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			addPositive(requests, resources.Requests, name)
			limited = addPositive(limits, resources.Limits, name) && limited
		}
	}
	if spec.Resources != nil {
		add(spec.Resources)
	} else {
		for i := range spec.Containers {
			add(&spec.Containers[i].Resources)
		}
		for i := range spec.InitContainers {
			add(&spec.InitContainers[i].Resources)
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case limited && apiequality.Semantic.DeepEqual(requests, limits):
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func addPositive(sum, list corev1.ResourceList, name corev1.ResourceName) bool {
	quantity, ok := list[name]
	if !ok || quantity.Sign() <= 0 {
		return false
	}
	total := sum[name].DeepCopy()
	total.Add(quantity)
	sum[name] = total
	return true
}
