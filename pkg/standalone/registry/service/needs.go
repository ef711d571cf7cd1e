// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	corev1 "k8s.io/api/core/v1"
)

// These functions tell which of the linked fields a Service has a use for.

func needsClusterIP(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName
}

func isHeadless(service *corev1.Service) bool {
	return len(service.Spec.ClusterIPs) == 1 && service.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func isLoadBalancer(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// mayHaveNodePorts tells whether node ports mean anything, given or allocated.
func mayHaveNodePorts(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeNodePort || isLoadBalancer(service)
}

// wantsNodePorts tells whether every port gets a node port. A load balancer can
// do without; it keeps those that it was given by hand.
func wantsNodePorts(service *corev1.Service) bool {
	allocate := service.Spec.AllocateLoadBalancerNodePorts
	return service.Spec.Type == corev1.ServiceTypeNodePort || isLoadBalancer(service) && (allocate == nil || *allocate)
}

func needsHealthCheckNodePort(service *corev1.Service) bool {
	return isLoadBalancer(service) && service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func isExternallyAccessible(service *corev1.Service) bool {
	return mayHaveNodePorts(service) || service.Spec.Type == corev1.ServiceTypeClusterIP && len(service.Spec.ExternalIPs) > 0
}
