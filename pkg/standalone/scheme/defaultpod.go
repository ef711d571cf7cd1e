// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	corev1 "k8s.io/api/core/v1"
)

// setPodDefaults sets what a pod gets beyond what its template would get.
func setPodDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		one := int64(1)
		spec.TerminationGracePeriodSeconds = &one
	}
	defaultRequests(spec.Containers)
	defaultRequests(spec.InitContainers)
	defaultPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if spec.HostNetwork {
		defaultHostPorts(spec.Containers)
		defaultHostPorts(spec.InitContainers)
	}
	setPodSpecDefaults(spec)
	syncPodIPs(&pod.Status)
	setPodStatusDefaults(&pod.Status)
}

func setPodStatusDefaults(status *corev1.PodStatus) {
	roundResources(status.AllocatedResources)
	roundRequirements(status.Resources)
	for _, statuses := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			roundResources(statuses[i].AllocatedResources)
			roundRequirements(statuses[i].Resources)
		}
	}
}

// defaultRequests makes a limit the request where only the limit is given.
func defaultRequests(containers []corev1.Container) {
	for i := range containers {
		resources := &containers[i].Resources
		if resources.Limits != nil && resources.Requests == nil {
			resources.Requests = make(corev1.ResourceList, len(resources.Limits))
		}
		for name, quantity := range resources.Limits {
			if _, ok := resources.Requests[name]; !ok {
				resources.Requests[name] = quantity.DeepCopy()
			}
		}
	}
}

func defaultHostPorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			defaultTo(&containers[i].Ports[j].HostPort, containers[i].Ports[j].ContainerPort)
		}
	}
}

// syncPodIPs keeps podIP and podIPs equal. Where they contradict each other,
// the single address wins: an old client may have changed only that.
func syncPodIPs(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

func setPodTemplateDefaults(template *corev1.PodTemplateSpec) { setPodSpecDefaults(&template.Spec) }

// setPodSpecDefaults is for pods and for the templates of workloads.
func setPodSpecDefaults(spec *corev1.PodSpec) {
	// serviceAccount is an alias of serviceAccountName, which wins.
	defaultTo(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	defaultTo(&spec.DNSPolicy, corev1.DNSClusterFirst)
	defaultTo(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	defaultPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	defaultPointer(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	defaultTo(&spec.SchedulerName, corev1.DefaultSchedulerName)
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		setContainerDefaults(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		setContainerDefaults(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		// The two types have the same fields, so that they convert into each other.
		setContainerDefaults((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundResources(spec.Overhead)
	roundRequirements(spec.Resources)
}
