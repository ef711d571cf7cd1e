// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package networking stores ServiceCIDRs of networking.k8s.io/v1 for the
// standalone server. They tell what the ranges of cluster IPs are; the ranges
// that Services are allocated from are those the server was started with.
package networking

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/servicecidrs"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "servicecidrs" and "servicecidrs/status".
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*networkingv1.ServiceCIDR]{
		Version:      networkingv1.SchemeGroupVersion,
		Kind:         "ServiceCIDR",
		Resource:     "servicecidrs",
		Singular:     "servicecidr",
		New:          func() *networkingv1.ServiceCIDR { return &networkingv1.ServiceCIDR{} },
		NewList:      func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
		Table:        servicecidrs.NewTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*networkingv1.ServiceCIDR]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, cidr *networkingv1.ServiceCIDR) {
				cidr.Status = networkingv1.ServiceCIDRStatus{}
			},
			PrepareForUpdate: func(_ context.Context, cidr, old *networkingv1.ServiceCIDR) { cidr.Status = old.Status },
			Validate: func(_ context.Context, cidr *networkingv1.ServiceCIDR) field.ErrorList {
				return validateCIDRs(cidr.Spec.CIDRs, field.NewPath("spec", "cidrs"))
			},
			ValidateUpdate: func(_ context.Context, cidr, old *networkingv1.ServiceCIDR) field.ErrorList {
				return validateCIDRsUpdate(cidr.Spec.CIDRs, old.Spec.CIDRs, field.NewPath("spec", "cidrs"))
			},
		},
		Status: &resource.Rules[*networkingv1.ServiceCIDR]{
			Reset: resource.Fields([]string{"metadata"}, []string{"spec"}),
			PrepareForUpdate: func(_ context.Context, cidr, old *networkingv1.ServiceCIDR) {
				cidr.Spec = old.Spec
				metav1.ResetObjectMetaForStatus(&cidr.ObjectMeta, &old.ObjectMeta)
			},
		},
	})
}

func validateCIDRs(cidrs []string, path *field.Path) field.ErrorList {
	switch {
	case len(cidrs) == 0:
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	case len(cidrs) > 2:
		return field.ErrorList{field.Invalid(path, cidrs, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, cidr := range cidrs {
		errs = append(errs, validation.IsValidCIDR(path.Index(i), cidr)...)
	}
	if len(cidrs) == 2 {
		family := utilnet.IPFamilyOfCIDRString(cidrs[0])
		if family == utilnet.IPFamilyOfCIDRString(cidrs[1]) && family != utilnet.IPFamilyUnknown {
			errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
	}
	return errs
}

// validateCIDRsUpdate lets a second family be added, and nothing else.
func validateCIDRsUpdate(cidrs, old []string, path *field.Path) field.ErrorList {
	added := len(old) == 1 && len(cidrs) == 2
	if len(cidrs) != len(old) && !added {
		return field.ErrorList{field.Invalid(path, cidrs, apivalidation.FieldImmutableErrorMsg)}
	}
	var errs field.ErrorList
	for i := range old {
		if cidrs[i] != old[i] {
			errs = append(errs, field.Invalid(path.Index(i), cidrs[i], apivalidation.FieldImmutableErrorMsg))
		}
	}
	if added {
		errs = append(errs, validateCIDRs(cidrs, path)...)
	}
	return errs
}
