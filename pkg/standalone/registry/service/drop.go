// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// dropUnused clears what the old Service had a use for and the new one has not,
// so that changing the type alone is enough. What the client has changed as
// well stays, for the validation to refuse.
func dropUnused(service, old *corev1.Service) {
	spec := &service.Spec
	if needsClusterIP(old) && !needsClusterIP(service) {
		if spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
			spec.IPFamilies = nil
		}
		if ptr.Equal(spec.IPFamilyPolicy, old.Spec.IPFamilyPolicy) {
			spec.IPFamilyPolicy = nil
		}
	}
	if mayHaveNodePorts(old) && !mayHaveNodePorts(service) && noneAdded(nodePortsOf(service), nodePortsOf(old)) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if needsHealthCheckNodePort(old) && !needsHealthCheckNodePort(service) && spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if isLoadBalancer(old) && !isLoadBalancer(service) {
		if ptr.Equal(spec.AllocateLoadBalancerNodePorts, old.Spec.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
	}
	if isExternallyAccessible(old) && !isExternallyAccessible(service) && spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if !isLoadBalancer(service) {
		service.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func noneAdded(now, before sets.Set[int32]) bool {
	return before.IsSuperset(now)
}
