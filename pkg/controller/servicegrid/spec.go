// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// desiredSpec returns the template with the defaults of the API server, and with what the API server has allocated
// for live, if there is a live Service and the template does not say otherwise. Each field is of one of two kinds:
//
//   - allocated: clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy, loadBalancerClass, healthCheckNodePort and the
//     nodePort of each port are live's as long as the template does not set them;
//   - all others are the template's, and their default if it does not set them. So an edit of the Service is undone,
//     and what is removed from the template is removed from the Service.
func desiredSpec(template, live *corev1.ServiceSpec) *corev1.ServiceSpec {
	spec := template.DeepCopy()
	setDefaults(spec)
	if live != nil {
		keepAddresses(spec, live)
		keepNodePorts(spec, live)
		keepLoadBalancer(spec, live)
	}
	return spec
}

// setDefaults sets what the API server sets when it decodes a Service. To compare a Service with its template, both
// get them: a server of another version may not know a default.
func setDefaults(spec *corev1.ServiceSpec) {
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	setAffinityDefaults(spec)
	if spec.Type != corev1.ServiceTypeExternalName && spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	external := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer ||
		spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
	if external && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = new(true)
	}
}

func setAffinityDefaults(spec *corev1.ServiceSpec) {
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	switch config := spec.SessionAffinityConfig; {
	case spec.SessionAffinity == corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case spec.SessionAffinity != corev1.ServiceAffinityClientIP:
	case config == nil, config.ClientIP == nil, config.ClientIP.TimeoutSeconds == nil:
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)},
		}
	}
}

// keepAddresses keeps the cluster IPs and what goes with them. A Service of type ExternalName has none of that, so
// nothing is kept on the way to it or from it.
func keepAddresses(spec, live *corev1.ServiceSpec) {
	if spec.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName {
		return
	}
	if spec.ClusterIP == "" {
		spec.ClusterIP = live.ClusterIP
	}
	if spec.IPFamilyPolicy == nil && live.IPFamilyPolicy != nil {
		spec.IPFamilyPolicy = new(*live.IPFamilyPolicy)
	}
	dual := spec.IPFamilyPolicy == nil || *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack
	if spec.ClusterIP == live.ClusterIP {
		spec.ClusterIPs = keepList(spec.ClusterIPs, live.ClusterIPs, dual)
	}
	spec.IPFamilies = keepList(spec.IPFamilies, live.IPFamilies, dual)
}

// keepList returns live if wanted is how it begins. The API server adds the second family of a dual-stack Service to
// the first, and refuses to take it away but by a change of the policy to SingleStack, which leaves the first.
func keepList[T comparable](wanted, live []T, dual bool) []T {
	if len(wanted) > len(live) || !slices.Equal(wanted, live[:len(wanted)]) {
		return wanted
	}
	if !dual && len(wanted) < 2 && len(live) > 1 {
		live = live[:1]
	}
	return slices.Clone(live)
}

// keepLoadBalancer keeps what cannot be changed while the Service needs it.
func keepLoadBalancer(spec, live *corev1.ServiceSpec) {
	if spec.Type != corev1.ServiceTypeLoadBalancer || live.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	if spec.LoadBalancerClass == nil && live.LoadBalancerClass != nil {
		spec.LoadBalancerClass = new(*live.LoadBalancerClass)
	}
	if spec.HealthCheckNodePort == 0 && needsHealthCheckNodePort(spec) && needsHealthCheckNodePort(live) {
		spec.HealthCheckNodePort = live.HealthCheckNodePort
	}
}

func needsHealthCheckNodePort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
