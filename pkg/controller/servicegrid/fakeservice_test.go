// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func compareNames(a, b string) int { return strings.Compare(a, b) }

func isExternalName(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

func isExternal(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(s.Spec.ExternalIPs) > 0 && !isExternalName(s)
}

func needsPorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeLoadBalancer && (s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts)
}

func needsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// prepareService is what the API server does with the spec of a Service before it stores it.
func (f *fakeAPI) prepareService(s, old *corev1.Service) error {
	defaultService(s)
	if old != nil {
		s.Status = old.Status
		f.inferFromOld(s, old)
	}
	if errs := validateService(s, old); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, s.Name, errs)
	}
	f.allocate(s)
	return nil
}

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	} else if spec.SessionAffinityConfig == nil {
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10800))}}
	}
	for i := range spec.Ports {
		if spec.Ports[i].Protocol == "" {
			spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
		if spec.Ports[i].TargetPort == (intstr.IntOrString{}) {
			spec.Ports[i].TargetPort = intstr.FromInt32(spec.Ports[i].Port)
		}
	}
	if !isExternalName(s) && spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if isExternal(s) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = new(true)
	}
}

// inferFromOld fills in what was allocated before, and drops what a change of the type has made pointless, if it is as
// it was.
func (f *fakeAPI) inferFromOld(s, old *corev1.Service) {
	if !isExternalName(s) && !isExternalName(old) {
		if s.Spec.ClusterIP == "" {
			s.Spec.ClusterIP = old.Spec.ClusterIP
		}
		if len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
	}
	if isExternalName(s) && !isExternalName(old) {
		if s.Spec.ClusterIP == old.Spec.ClusterIP {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		}
		if slices.Equal(s.Spec.IPFamilies, old.Spec.IPFamilies) {
			s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = nil, nil
		}
	}
	if needsPorts(s) && needsPorts(old) {
		for i := range s.Spec.Ports {
			j := slices.IndexFunc(old.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == s.Spec.Ports[i].Name })
			if s.Spec.Ports[i].NodePort == 0 && j >= 0 {
				number := old.Spec.Ports[j].NodePort
				if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == number }) {
					s.Spec.Ports[i].NodePort = number
				}
			}
		}
	}
	if needsPorts(old) && s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		for i := range s.Spec.Ports {
			if slices.ContainsFunc(old.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == s.Spec.Ports[i].NodePort }) {
				s.Spec.Ports[i].NodePort = 0
			}
		}
	}
	if needsHealthPort(s) && needsHealthPort(old) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

func validateService(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	bad := func(wrong bool, name string) {
		if wrong {
			errs = append(errs, field.Invalid(spec.Child(name), "", "wrong"))
		}
	}
	bad(isExternalName(s) != (s.Spec.ExternalName != ""), "externalName")
	bad(isExternalName(s) && s.Spec.ClusterIP != "", "clusterIP")
	bad(isExternalName(s) && len(s.Spec.ClusterIPs) > 0, "clusterIPs")
	bad(isExternalName(s) && len(s.Spec.IPFamilies) > 0, "ipFamilies")
	bad(isExternalName(s) && s.Spec.IPFamilyPolicy != nil, "ipFamilyPolicy")
	bad(isExternalName(s) && s.Spec.InternalTrafficPolicy != nil, "internalTrafficPolicy")
	bad(len(s.Spec.Ports) == 0 && !isExternalName(s) && s.Spec.ClusterIP != corev1.ClusterIPNone, "ports")
	bad(!isExternal(s) && s.Spec.ExternalTrafficPolicy != "", "externalTrafficPolicy")
	bad(!needsHealthPort(s) && s.Spec.HealthCheckNodePort != 0, "healthCheckNodePort")
	bad(s.Spec.Type != corev1.ServiceTypeLoadBalancer && s.Spec.AllocateLoadBalancerNodePorts != nil, "allocateLoadBalancerNodePorts")
	bad(s.Spec.Type != corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass != nil, "loadBalancerClass")
	bad(isExternal(s) && s.Spec.ClusterIP == corev1.ClusterIPNone, "clusterIP")
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	ports, nodePorts := map[key]bool{}, map[key]bool{}
	for _, port := range s.Spec.Ports {
		number, nodePort := key{port.Port, port.Protocol}, key{port.NodePort, port.Protocol}
		bad(ports[number], "ports")
		bad(port.NodePort != 0 && nodePorts[nodePort], "ports.nodePort")
		bad(port.NodePort != 0 && s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeLoadBalancer, "ports.nodePort")
		ports[number], nodePorts[nodePort] = true, true
	}
	if old != nil {
		bad(!isExternalName(s) && !isExternalName(old) && s.Spec.ClusterIP != old.Spec.ClusterIP, "clusterIP")
		bad(needsHealthPort(s) && needsHealthPort(old) && s.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort, "healthCheckNodePort")
	}
	controllers := 0
	for _, reference := range s.OwnerReferences {
		if reference.Controller != nil && *reference.Controller {
			controllers++
		}
	}
	bad(controllers > 1, "ownerReferences")
	return errs
}

func (f *fakeAPI) allocate(s *corev1.Service) {
	if !isExternalName(s) {
		if s.Spec.ClusterIP == "" {
			f.uids++
			s.Spec.ClusterIP = fmt.Sprintf("10.0.%d.%d", f.uids/250, f.uids%250+1)
		}
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		if len(s.Spec.IPFamilies) == 0 {
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		}
	}
	for i := range s.Spec.Ports {
		if needsPorts(s) && s.Spec.Ports[i].NodePort == 0 {
			f.ports++
			s.Spec.Ports[i].NodePort = f.ports
		}
	}
	if needsHealthPort(s) && s.Spec.HealthCheckNodePort == 0 {
		f.ports++
		s.Spec.HealthCheckNodePort = f.ports
	}
}

// ownerOf is what the controller writes as its reference to grid.
func ownerOf(grid metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "superedge.io/v1", Kind: "ServiceGrid", Name: grid.GetName(), UID: grid.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}
