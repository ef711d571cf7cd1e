// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// sourceRangesAnnotation is the older form of spec.loadBalancerSourceRanges.
const sourceRangesAnnotation = corev1.AnnotationLoadBalancerSourceRangesKey

func validateExternalIPs(service, old *corev1.Service, path *field.Path) field.ErrorList {
	var known []string
	if old != nil {
		known = old.Spec.ExternalIPs
	}
	var errs field.ErrorList
	for i, ip := range service.Spec.ExternalIPs {
		if ipErrs := validation.IsValidIPForLegacyField(path.Index(i), ip, true, known); len(ipErrs) > 0 {
			errs = append(errs, ipErrs...)
			continue
		}
		errs = append(errs, resource.EndpointIP(path.Index(i), ip)...)
	}
	return errs
}

const onlyForLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

// validateSourceRanges allows blanks around the values, which both forms always
// have. The name of the field is capitalised as kube-apiserver has it.
func validateSourceRanges(service, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	if ranges := service.Spec.LoadBalancerSourceRanges; len(ranges) > 0 {
		path := field.NewPath("spec", "LoadBalancerSourceRanges")
		if !isLoadBalancer(service) {
			errs = append(errs, field.Forbidden(path, onlyForLoadBalancer))
		}
		var known []string
		if old != nil {
			for _, cidr := range old.Spec.LoadBalancerSourceRanges {
				known = append(known, strings.TrimSpace(cidr))
			}
		}
		for i, cidr := range ranges {
			errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), strings.TrimSpace(cidr), true, known)...)
		}
		return errs
	}
	text, ok := service.Annotations[sourceRangesAnnotation]
	if !ok {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(sourceRangesAnnotation)
	if !isLoadBalancer(service) {
		errs = append(errs, field.Forbidden(path, onlyForLoadBalancer))
	}
	if old != nil && old.Annotations[sourceRangesAnnotation] == text || strings.TrimSpace(text) == "" {
		return errs
	}
	for cidr := range strings.SplitSeq(text, ",") {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path, strings.TrimSpace(cidr), true, nil)...)
	}
	return errs
}

func validateLoadBalancer(service *corev1.Service, spec *field.Path) field.ErrorList {
	allocate, class := service.Spec.AllocateLoadBalancerNodePorts, service.Spec.LoadBalancerClass
	var errs field.ErrorList
	switch {
	case !isLoadBalancer(service):
		if allocate != nil {
			errs = append(errs, field.Forbidden(spec.Child("allocateLoadBalancerNodePorts"), onlyForLoadBalancer))
		}
		if class != nil {
			errs = append(errs, field.Forbidden(spec.Child("loadBalancerClass"), onlyForLoadBalancer))
		}
	case allocate == nil:
		errs = append(errs, field.Required(field.NewPath("allocateLoadBalancerNodePorts"), ""))
	}
	if isLoadBalancer(service) && class != nil {
		errs = append(errs, resource.Invalid(spec.Child("loadBalancerClass"), *class, validation.IsQualifiedName(*class))...)
	}
	return errs
}

func validateLoadBalancerUpdate(service, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if isLoadBalancer(service) && isLoadBalancer(old) && !ptr.Equal(service.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		errs = append(errs, field.Invalid(spec.Child("loadBalancerClass"), service.Spec.LoadBalancerClass, "may not change once set"))
	}
	if needsHealthCheckNodePort(service) && needsHealthCheckNodePort(old) && service.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(spec.Child("healthCheckNodePort"), apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateExternalTraffic(service *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	path, policy := spec.Child("externalTrafficPolicy"), service.Spec.ExternalTrafficPolicy
	switch policy {
	case "":
		if isExternallyAccessible(service) {
			errs = append(errs, field.Required(path, ""))
		}
	case corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal:
		if !isExternallyAccessible(service) {
			errs = append(errs, field.Invalid(path, policy, "may only be set for externally-accessible services"))
		}
	default:
		if !isExternallyAccessible(service) {
			errs = append(errs, field.Invalid(path, policy, "may only be set for externally-accessible services"))
		} else {
			errs = append(errs, field.NotSupported(path, policy, []corev1.ServiceExternalTrafficPolicy{
				corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal,
			}))
		}
	}
	path, port := spec.Child("healthCheckNodePort"), service.Spec.HealthCheckNodePort
	switch {
	case needsHealthCheckNodePort(service) && port == 0:
		errs = append(errs, field.Required(path, ""))
	case needsHealthCheckNodePort(service):
		errs = append(errs, resource.Invalid(path, port, validation.IsValidPortNum(int(port)))...)
	case port != 0:
		errs = append(errs, field.Invalid(path, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	return errs
}

func validateInternalTraffic(service *corev1.Service, path *field.Path) field.ErrorList {
	policy := service.Spec.InternalTrafficPolicy
	if policy == nil {
		if service.Spec.Type == corev1.ServiceTypeClusterIP || mayHaveNodePorts(service) {
			return field.ErrorList{field.Required(path, "")}
		}
		return nil
	}
	if *policy != corev1.ServiceInternalTrafficPolicyCluster && *policy != corev1.ServiceInternalTrafficPolicyLocal {
		return field.ErrorList{field.NotSupported(path, *policy, []corev1.ServiceInternalTrafficPolicy{
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal,
		})}
	}
	return nil
}

func validateTrafficDistribution(service *corev1.Service, path *field.Path) field.ErrorList {
	switch distribution := ptr.Deref(service.Spec.TrafficDistribution, corev1.ServiceTrafficDistributionPreferClose); distribution {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode:
		return nil
	default:
		return field.ErrorList{field.NotSupported(path, distribution, []string{
			corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone,
			corev1.ServiceTrafficDistributionPreferSameNode,
		})}
	}
}
