// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func validateStatusUpdate(service, old *corev1.Service) field.ErrorList {
	path := field.NewPath("status", "loadBalancer", "ingress")
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) > 0 && !isLoadBalancer(service) {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var errs field.ErrorList
	var known []string
	for i := range old.Status.LoadBalancer.Ingress {
		if ip := old.Status.LoadBalancer.Ingress[i].IP; ip != "" {
			known = append(known, ip)
		}
	}
	for i := range ingress {
		errs = append(errs, validateIngress(&ingress[i], known, path.Index(i))...)
	}
	return errs
}

func validateIngress(ingress *corev1.LoadBalancerIngress, known []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ingress.IP != "" {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), ingress.IP, true, known)...)
	}
	switch mode := ingress.IPMode; {
	case mode == nil && ingress.IP == "":
	case mode == nil:
		errs = append(errs, field.Required(path.Child("ipMode"), "must be specified when `ip` is set"))
	case ingress.IP == "":
		errs = append(errs, field.Forbidden(path.Child("ipMode"), "may not be specified when `ip` is not set"))
	case *mode != corev1.LoadBalancerIPModeVIP && *mode != corev1.LoadBalancerIPModeProxy:
		errs = append(errs, field.NotSupported(path.Child("ipMode"), *mode, []corev1.LoadBalancerIPMode{
			corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP,
		}))
	}
	if ingress.Hostname != "" {
		errs = append(errs, resource.Invalid(path.Child("hostname"), ingress.Hostname, validation.IsDNS1123Subdomain(ingress.Hostname))...)
		if netutils.ParseIPSloppy(ingress.Hostname) != nil {
			errs = append(errs, field.Invalid(path.Child("hostname"), ingress.Hostname, "must be a DNS name, not an IP address"))
		}
	}
	return errs
}
