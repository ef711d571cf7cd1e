// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func setNodeDefaults(node *corev1.Node) {
	syncPodCIDRs(&node.Spec)
	roundResources(node.Status.Capacity)
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	roundResources(node.Status.Allocatable)
}

// syncPodCIDRs keeps podCIDR and podCIDRs equal. Where they contradict each
// other, the single range wins: an old client may have changed only that.
func syncPodCIDRs(spec *corev1.NodeSpec) {
	switch {
	case spec.PodCIDR == "" && len(spec.PodCIDRs) > 0:
		spec.PodCIDR = spec.PodCIDRs[0]
	case spec.PodCIDR != "" && (len(spec.PodCIDRs) == 0 || spec.PodCIDRs[0] != spec.PodCIDR):
		spec.PodCIDRs = []string{spec.PodCIDR}
	}
}

// setSecretDefaults also moves stringData, which is write-only, into data.
func setSecretDefaults(secret *corev1.Secret) {
	defaultTo(&secret.Type, corev1.SecretTypeOpaque)
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = make(map[string][]byte, len(secret.StringData))
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func setEndpointsDefaults(endpoints *corev1.Endpoints) {
	for i := range endpoints.Subsets {
		for j := range endpoints.Subsets[i].Ports {
			defaultTo(&endpoints.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func setEndpointSliceDefaults(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Ports {
		defaultPointer(&slice.Ports[i].Name, "")
		defaultPointer(&slice.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func setBindingDefaults(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	defaultTo(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		switch subjects[i].Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			defaultTo(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// roundResources rounds quantities up to thousandths, below which no resource
// is counted.
func roundResources(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func roundRequirements(requirements *corev1.ResourceRequirements) {
	if requirements != nil {
		roundResources(requirements.Limits)
		roundResources(requirements.Requests)
	}
}
