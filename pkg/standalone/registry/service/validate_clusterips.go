// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

var (
	clusterIPsPath     = field.NewPath("spec", "clusterIPs")
	ipFamiliesPath     = field.NewPath("spec", "ipFamilies")
	ipFamilyPolicyPath = field.NewPath("spec", "ipFamilyPolicy")
)

// validateClusterIPs checks clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy
// each for itself and against one another. The allocation relies on it, too.
// old is nil on create.
func validateClusterIPs(service, old *corev1.Service) field.ErrorList {
	if !needsClusterIP(service) {
		return nil
	}
	spec := &service.Spec
	errs := validateFirstClusterIP(spec)
	errs = append(errs, validateIPFamilies(spec)...)

	var known []string
	if old != nil {
		known = old.Spec.ClusterIPs
	}
	formed := true
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(spec.ClusterIPs) > 1 {
				formed = false
				errs = append(errs, field.Invalid(clusterIPsPath, spec.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		ipErrs := validation.IsValidIPForLegacyField(clusterIPsPath.Index(i), ip, true, known)
		formed = formed && len(ipErrs) == 0
		errs = append(errs, ipErrs...)
	}
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(clusterIPsPath, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if !formed {
		return errs
	}
	if len(spec.ClusterIPs) > 1 {
		if dual, err := netutils.IsDualStackIPStrings(spec.ClusterIPs); err != nil || !dual {
			errs = append(errs, field.Invalid(clusterIPsPath, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
		}
	}
	if isHeadless(service) {
		return errs
	}
	for i := range min(len(spec.ClusterIPs), len(spec.IPFamilies)) {
		if family := spec.IPFamilies[i]; isIPFamily(family) && familyOf(spec.ClusterIPs[i]) != family {
			errs = append(errs, field.Invalid(clusterIPsPath.Index(i), spec.ClusterIPs[i],
				fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", family, i)))
		}
	}
	return errs
}

// validateFirstClusterIP holds clusterIP and clusterIPs together.
func validateFirstClusterIP(spec *corev1.ServiceSpec) field.ErrorList {
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		return field.ErrorList{field.Invalid(clusterIPsPath, spec.ClusterIPs, "must be empty when `clusterIP` is not specified")}
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		return field.ErrorList{field.Required(clusterIPsPath, "")}
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		return field.ErrorList{field.Invalid(clusterIPsPath, spec.ClusterIPs, "first value must match `clusterIP`")}
	}
	return nil
}

func isIPFamily(family corev1.IPFamily) bool {
	return family == corev1.IPv4Protocol || family == corev1.IPv6Protocol
}

func validateIPFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.IPFamily]()
	for i, family := range spec.IPFamilies {
		if !isIPFamily(family) {
			errs = append(errs, field.NotSupported(ipFamiliesPath.Index(i), family, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		}
		if seen.Has(family) {
			errs = append(errs, field.Duplicate(ipFamiliesPath.Index(i), family))
		}
		seen.Insert(family)
	}
	if policy := spec.IPFamilyPolicy; policy != nil {
		switch *policy {
		case corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack:
		default:
			errs = append(errs, field.NotSupported(ipFamilyPolicyPath, *policy, []corev1.IPFamilyPolicy{
				corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack,
			}))
		}
	}
	return errs
}

// validateClusterIPsUpdate: the first address stays as long as the Service has
// one. The second may come, and go with SingleStack.
func validateClusterIPsUpdate(service, old *corev1.Service) field.ErrorList {
	if !needsClusterIP(service) || !needsClusterIP(old) || isHeadless(service) && isHeadless(old) {
		return nil
	}
	var errs field.ErrorList
	changed := func(i int) {
		errs = append(errs, field.Invalid(clusterIPsPath.Index(i), service.Spec.ClusterIPs, "may not change once set"))
	}
	now, before := service.Spec.ClusterIPs, old.Spec.ClusterIPs
	if len(now) == len(before) {
		for i := range before {
			if now[i] != before[i] {
				changed(i)
			}
		}
		return errs
	}
	if len(now) > 0 && len(before) > 0 && now[0] != before[0] {
		changed(0)
	}
	if len(now) == 0 {
		errs = append(errs, field.Invalid(clusterIPsPath.Index(0), now, "primary clusterIP can not be unset"))
	}
	if len(before) > len(now) && len(now) == 1 && !isSingleStack(service) {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, service.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP"))
	}
	return errs
}

// validateIPFamiliesUpdate is the same for the families. A headless Service may
// change them.
func validateIPFamiliesUpdate(service, old *corev1.Service) field.ErrorList {
	if !needsClusterIP(service) || !needsClusterIP(old) || isHeadless(service) || isHeadless(old) {
		return nil
	}
	var errs field.ErrorList
	now, before := service.Spec.IPFamilies, old.Spec.IPFamilies
	if len(now) == len(before) {
		for i := range before {
			if now[i] != before[i] {
				errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "may not change once set"))
			}
		}
		return errs
	}
	if len(now) == 0 {
		return field.ErrorList{field.Invalid(ipFamiliesPath.Index(0), now, "primary ipFamily can not be unset")}
	}
	if len(before) > 0 && now[0] != before[0] {
		errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "may not change once set"))
	}
	if len(before) > len(now) && !isSingleStack(service) {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, service.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily"))
	}
	return errs
}

func isSingleStack(service *corev1.Service) bool {
	policy := service.Spec.IPFamilyPolicy
	return policy != nil && *policy == corev1.IPFamilyPolicySingleStack
}
