// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// completeFamilies sets ipFamilyPolicy and ipFamilies, as far as the client has
// left them open, to what the cluster and the stored Service say (KEP-563), and
// refuses what the cluster cannot give. old is nil on create.
func (p *pools) completeFamilies(service, old *corev1.Service) error {
	// PreferDualStack takes what the cluster had when the Service was written.
	// It is not extended later without being asked.
	if !needsClusterIP(service) || old != nil && keepsPreferDualStack(service, old) {
		return nil
	}
	if service.Spec.IPFamilyPolicy == nil {
		service.Spec.IPFamilyPolicy = ptr.To(defaultFamilyPolicy(service, old))
	}
	// What follows relies on the form of these fields.
	if errs := validateClusterIPs(service, old); len(errs) > 0 {
		return invalid(service, errs...)
	}
	var errs field.ErrorList
	if old != nil {
		errs = append(errs, releaseSecondary(service, old)...)
	}
	errs = append(errs, checkSingleStack(service)...)
	errs = append(errs, p.inferFamilies(service)...)
	if len(errs) > 0 {
		return invalid(service, errs...)
	}

	// Endpoints of a headless Service without a selector are made by hand and
	// may be of any family, whatever the cluster has.
	if selectorless := isHeadless(service) && len(service.Spec.Selector) == 0; !selectorless {
		if errs := p.checkFamilies(service); len(errs) > 0 {
			return invalid(service, errs...)
		}
		p.addFamilies(service, p.isDualStack())
	} else {
		p.addFamilies(service, true)
	}
	return nil
}

// keepsPreferDualStack tells whether both are PreferDualStack and nothing about
// their addresses changes.
func keepsPreferDualStack(service, old *corev1.Service) bool {
	prefers := func(policy *corev1.IPFamilyPolicy) bool { return *policy == corev1.IPFamilyPolicyPreferDualStack }
	return service.Spec.Type == old.Spec.Type &&
		service.Spec.IPFamilyPolicy != nil && prefers(service.Spec.IPFamilyPolicy) &&
		(old.Spec.IPFamilyPolicy == nil || prefers(old.Spec.IPFamilyPolicy)) &&
		slices.Equal(service.Spec.ClusterIPs, old.Spec.ClusterIPs) &&
		slices.Equal(service.Spec.IPFamilies, old.Spec.IPFamilies)
}

func defaultFamilyPolicy(service, old *corev1.Service) corev1.IPFamilyPolicy {
	switch {
	case old != nil && old.Spec.IPFamilyPolicy != nil:
		return *old.Spec.IPFamilyPolicy
	case service.Spec.ClusterIP == corev1.ClusterIPNone && len(service.Spec.Selector) == 0:
		return corev1.IPFamilyPolicyRequireDualStack
	default:
		return corev1.IPFamilyPolicySingleStack
	}
}

// releaseSecondary drops the secondary address and family of a Service that
// becomes SingleStack. Under another policy they cannot be dropped.
func releaseSecondary(service, old *corev1.Service) field.ErrorList {
	spec := &service.Spec
	path := field.NewPath("spec", "ipFamilyPolicy")
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		if len(spec.ClusterIPs) > 1 && slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
			spec.ClusterIPs = spec.ClusterIPs[:1:1]
		}
		if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
			spec.IPFamilies = spec.IPFamilies[:1:1]
		}
		return nil
	}
	var errs field.ErrorList
	if n := len(spec.ClusterIPs); n > 0 && n < len(old.Spec.ClusterIPs) {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if n := len(spec.IPFamilies); n > 0 && n < len(old.Spec.IPFamilies) {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

func checkSingleStack(service *corev1.Service) field.ErrorList {
	spec := &service.Spec
	if *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "ipFamilyPolicy")
	if len(spec.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if len(spec.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(path, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	return errs
}

// inferFamilies appends the families of addresses that have none.
func (p *pools) inferFamilies(service *corev1.Service) field.ErrorList {
	spec := &service.Spec
	if isHeadless(service) {
		return nil
	}
	var errs field.ErrorList
	for i := len(spec.IPFamilies); i < len(spec.ClusterIPs); i++ {
		family := familyOf(spec.ClusterIPs[i])
		if !p.has(family) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), spec.ClusterIPs,
				fmt.Sprintf("%s is not configured on this cluster", family)))
			continue
		}
		spec.IPFamilies = append(spec.IPFamilies, family)
	}
	return errs
}

func (p *pools) checkFamilies(service *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	if *service.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && !p.isDualStack() {
		errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), service.Spec.IPFamilyPolicy,
			"this cluster is not configured for dual-stack services"))
	}
	for i, family := range service.Spec.IPFamilies {
		if !p.has(family) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

// addFamilies adds the primary family if there is none, and the other one if
// the policy asks for two and there can be two.
func (p *pools) addFamilies(service *corev1.Service, canBeDual bool) {
	spec := &service.Spec
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{p.primary}
	}
	if len(spec.IPFamilies) == 1 && canBeDual && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
}
