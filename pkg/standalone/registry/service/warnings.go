// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"
)

// warnings are what kube-apiserver 1.37 warns of: valid values that have no
// effect, are deprecated, or have an unusual form.
func warnings(service *corev1.Service) []string {
	spec := &service.Spec
	path := field.NewPath("spec")
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if _, ok := service.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		warn("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode)
	}
	headless := spec.Type == corev1.ServiceTypeClusterIP && isHeadless(service)
	if headless {
		if spec.LoadBalancerIP != "" {
			warn("spec.loadBalancerIP is ignored for headless services")
		}
		if len(spec.ExternalIPs) > 0 {
			warn("spec.externalIPs is ignored for headless services")
		}
		if spec.SessionAffinity != corev1.ServiceAffinityNone {
			warn("spec.SessionAffinity is ignored for headless services")
		}
	} else {
		for i, ip := range spec.ClusterIPs {
			out = append(out, validation.GetWarningsForIP(path.Child("clusterIPs").Index(i), ip)...)
		}
	}
	for i, ip := range spec.ExternalIPs {
		out = append(out, validation.GetWarningsForIP(path.Child("externalIPs").Index(i), ip)...)
	}
	ofExternalName := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.ExternalIPs) > 0 && !headless && !ofExternalName {
		warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	// Nothing validates this one.
	if netutils.ParseIPSloppy(spec.LoadBalancerIP) != nil {
		out = append(out, validation.GetWarningsForIP(path.Child("loadBalancerIP"), spec.LoadBalancerIP)...)
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		// Validation allows blanks around them.
		if _, _, err := netutils.ParseCIDRSloppy(cidr); err == nil {
			out = append(out, validation.GetWarningsForCIDR(path.Child("loadBalancerSourceRanges").Index(i), cidr)...)
		}
	}
	if ofExternalName && len(spec.ExternalIPs) > 0 {
		warn("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName)
	}
	if !ofExternalName && spec.ExternalName != "" {
		warn("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName)
	}
	if ptr.Deref(spec.TrafficDistribution, "") == corev1.ServiceTrafficDistributionPreferClose {
		warn("spec.trafficDistribution: %q is deprecated; use %q", corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone)
	}
	return out
}

func statusWarnings(service *corev1.Service) []string {
	path := field.NewPath("status", "loadBalancer", "ingress")
	var out []string
	for i := range service.Status.LoadBalancer.Ingress {
		if ip := service.Status.LoadBalancer.Ingress[i].IP; ip != "" {
			out = append(out, validation.GetWarningsForIP(path.Index(i), ip)...)
		}
	}
	return out
}
