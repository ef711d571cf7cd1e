// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/namespace"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
)

// addDefaults registers what an object gets when it is decoded, from a request
// or from the storage. What kube-apiserver does while it converts to its
// internal types is done here as well (stringData of a Secret, the two names
// of a pod's service account).
func addDefaults(s *runtime.Scheme) {
	addDefault(s, (*corev1.Pod)(nil), setPodDefaults)
	addDefault(s, (*corev1.Node)(nil), setNodeDefaults)
	addDefault(s, (*corev1.Namespace)(nil), namespace.SetDefaults)
	addDefault(s, (*corev1.Secret)(nil), setSecretDefaults)
	addDefault(s, (*corev1.Service)(nil), service.SetDefaults)
	addDefault(s, (*corev1.Endpoints)(nil), setEndpointsDefaults)
	addDefault(s, (*discoveryv1.EndpointSlice)(nil), setEndpointSliceDefaults)
	addDefault(s, (*appsv1.Deployment)(nil), setDeploymentDefaults)
	addDefault(s, (*appsv1.DaemonSet)(nil), setDaemonSetDefaults)
	addDefault(s, (*appsv1.ReplicaSet)(nil), setReplicaSetDefaults)
	addDefault(s, (*appsv1.StatefulSet)(nil), setStatefulSetDefaults)
	addDefault(s, (*superedgev1.ServiceGrid)(nil), setServiceGridDefaults)
	addDefault(s, (*superedgev1.ServiceGridList)(nil), func(list *superedgev1.ServiceGridList) { each(list.Items, setServiceGridDefaults) })
	addDefault(s, (*rbacv1.RoleBinding)(nil), func(binding *rbacv1.RoleBinding) {
		setBindingDefaults(&binding.RoleRef, binding.Subjects)
	})
	addDefault(s, (*rbacv1.ClusterRoleBinding)(nil), func(binding *rbacv1.ClusterRoleBinding) {
		setBindingDefaults(&binding.RoleRef, binding.Subjects)
	})

	// A list is decoded by clients and tests only, but then as a whole.
	addDefault(s, (*corev1.PodList)(nil), func(list *corev1.PodList) { each(list.Items, setPodDefaults) })
	addDefault(s, (*corev1.NodeList)(nil), func(list *corev1.NodeList) { each(list.Items, setNodeDefaults) })
	addDefault(s, (*corev1.NamespaceList)(nil), func(list *corev1.NamespaceList) { each(list.Items, namespace.SetDefaults) })
	addDefault(s, (*corev1.SecretList)(nil), func(list *corev1.SecretList) { each(list.Items, setSecretDefaults) })
	addDefault(s, (*corev1.ServiceList)(nil), func(list *corev1.ServiceList) { each(list.Items, service.SetDefaults) })
	addDefault(s, (*corev1.EndpointsList)(nil), func(list *corev1.EndpointsList) { each(list.Items, setEndpointsDefaults) })
	addDefault(s, (*discoveryv1.EndpointSliceList)(nil), func(list *discoveryv1.EndpointSliceList) {
		each(list.Items, setEndpointSliceDefaults)
	})
	addDefault(s, (*appsv1.DeploymentList)(nil), func(list *appsv1.DeploymentList) { each(list.Items, setDeploymentDefaults) })
	addDefault(s, (*appsv1.DaemonSetList)(nil), func(list *appsv1.DaemonSetList) { each(list.Items, setDaemonSetDefaults) })
	addDefault(s, (*appsv1.ReplicaSetList)(nil), func(list *appsv1.ReplicaSetList) { each(list.Items, setReplicaSetDefaults) })
	addDefault(s, (*appsv1.StatefulSetList)(nil), func(list *appsv1.StatefulSetList) { each(list.Items, setStatefulSetDefaults) })
}

// setServiceGridDefaults sets what the schema of the CustomResourceDefinition does.
func setServiceGridDefaults(grid *superedgev1.ServiceGrid) {
	for i := range grid.Spec.Template.Ports {
		defaultTo(&grid.Spec.Template.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func addDefault[T runtime.Object](s *runtime.Scheme, kind T, set func(T)) {
	s.AddTypeDefaultingFunc(kind, func(obj any) { set(obj.(T)) })
}

func each[T any](items []T, set func(*T)) {
	for i := range items {
		set(&items[i])
	}
}

// defaultTo sets what is not set.
func defaultTo[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

// defaultPointer sets what is nil.
func defaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
