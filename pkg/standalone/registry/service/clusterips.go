// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// linkClusterIPs makes clusterIPs follow clusterIP where a client knows the
// latter only. Clients that know both must set both; whether they agree is for
// the validation to say. old is nil on create.
func linkClusterIPs(service, old *corev1.Service) {
	spec := &service.Spec
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	sameSingular := spec.ClusterIP == old.Spec.ClusterIP
	if sameSingular {
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
		return
	}
	if !slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
		return
	}
	// Only the singular was changed.
	if spec.ClusterIP == "" {
		spec.ClusterIPs = nil
	} else {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// allocateClusterIPs gives a Service that holds none an address of each of its
// families.
func allocateClusterIPs(service *corev1.Service, r *reservation) error {
	if !needsClusterIP(service) || len(service.Spec.ClusterIPs) > 0 && service.Spec.ClusterIPs[0] == corev1.ClusterIPNone {
		return nil
	}
	for i := range service.Spec.IPFamilies {
		if err := allocateClusterIP(service, i, r); err != nil {
			return err
		}
	}
	return nil
}

// allocateClusterIP sets clusterIPs[i], which is the first one that is missing,
// or reserves the address that stands there.
func allocateClusterIP(service *corev1.Service, i int, r *reservation) error {
	spec := &service.Spec
	path := field.NewPath("spec", "clusterIPs")
	if i < len(spec.ClusterIPs) {
		address, ok := parseAddress(spec.ClusterIPs[i])
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("failed to parse service IP %q", spec.ClusterIPs[i]))
		}
		if err := r.takeIP(address); err != nil {
			return invalid(service, field.Invalid(path, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %v", spec.ClusterIPs[i], err)))
		}
		return nil
	}
	address, err := r.nextIP(spec.IPFamilies[i])
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", service.Name, err))
	}
	spec.ClusterIPs = append(spec.ClusterIPs, address.String())
	spec.ClusterIP = spec.ClusterIPs[0]
	return nil
}

// updateClusterIPs reserves what the new Service has in addition to the old
// one. Other changes of addresses are refused by the validation.
func updateClusterIPs(service, old *corev1.Service, r *reservation) error {
	switch {
	case !needsClusterIP(service):
		return nil
	case !needsClusterIP(old):
		return allocateClusterIPs(service, r)
	case isHeadless(old) || isHeadless(service):
		return nil
	case len(old.Spec.IPFamilies) == 1 && len(service.Spec.IPFamilies) == 2:
		return allocateClusterIP(service, 1, r)
	}
	return nil
}

func invalid(service *corev1.Service, errs ...*field.Error) error {
	return apierrors.NewInvalid(serviceKind.GroupKind(), service.Name, errs)
}
