// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme holds the API types that the standalone server serves, with
// the defaults that kube-apiserver gives them.
//
// Each type is registered twice: as its version, which clients see, and as
// runtime.APIVersionInternal, which the handlers of k8s.io/apiserver use as
// the hub of conversions. Both registrations name the same Go type, so that a
// conversion between them costs nothing and strategies work on the types of
// k8s.io/api. The one exception is the Event of events.k8s.io/v1, which has
// other fields: its hub is the Event of core/v1, as in kube-apiserver, so that
// both groups serve the same stored objects.
package scheme

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

type group struct {
	version schema.GroupVersion
	types   []runtime.Object
	// internal is the hub form of the types. Nil stands for the types themselves.
	internal []runtime.Object
}

// groups lists what is served. It is a function because a scheme takes the
// objects only to read their types.
func groups() []group {
	return []group{
		{version: corev1.SchemeGroupVersion, types: []runtime.Object{
			&corev1.ConfigMap{}, &corev1.ConfigMapList{},
			&corev1.Endpoints{}, &corev1.EndpointsList{},
			&corev1.Event{}, &corev1.EventList{},
			&corev1.Namespace{}, &corev1.NamespaceList{},
			&corev1.Node{}, &corev1.NodeList{},
			&corev1.Pod{}, &corev1.PodList{},
			&corev1.Secret{}, &corev1.SecretList{},
			&corev1.Service{}, &corev1.ServiceList{},
			&corev1.ServiceAccount{}, &corev1.ServiceAccountList{},
		}},
		{version: appsv1.SchemeGroupVersion, types: []runtime.Object{
			&appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{},
			&appsv1.DaemonSet{}, &appsv1.DaemonSetList{},
			&appsv1.Deployment{}, &appsv1.DeploymentList{},
			&appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{},
			&appsv1.StatefulSet{}, &appsv1.StatefulSetList{},
		}},
		{version: authenticationv1.SchemeGroupVersion, types: []runtime.Object{
			&authenticationv1.SelfSubjectReview{}, &authenticationv1.TokenRequest{}, &authenticationv1.TokenReview{},
		}},
		{version: authorizationv1.SchemeGroupVersion, types: []runtime.Object{
			&authorizationv1.LocalSubjectAccessReview{}, &authorizationv1.SelfSubjectAccessReview{},
			&authorizationv1.SelfSubjectRulesReview{}, &authorizationv1.SubjectAccessReview{},
		}},
		{version: autoscalingv1.SchemeGroupVersion, types: []runtime.Object{&autoscalingv1.Scale{}}},
		{version: coordinationv1.SchemeGroupVersion, types: []runtime.Object{
			&coordinationv1.Lease{}, &coordinationv1.LeaseList{},
		}},
		{version: discoveryv1.SchemeGroupVersion, types: []runtime.Object{
			&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{},
		}},
		{
			version:  eventsv1.SchemeGroupVersion,
			types:    []runtime.Object{&eventsv1.Event{}, &eventsv1.EventList{}},
			internal: []runtime.Object{&corev1.Event{}, &corev1.EventList{}},
		},
		{version: networkingv1.SchemeGroupVersion, types: []runtime.Object{
			&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{},
		}},
		{version: rbacv1.SchemeGroupVersion, types: []runtime.Object{
			&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{},
			&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{},
			&rbacv1.Role{}, &rbacv1.RoleList{},
			&rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{},
		}},
		{version: superedgev1.SchemeGroupVersion, types: []runtime.Object{
			&superedgev1.ServiceGrid{}, &superedgev1.ServiceGridList{},
		}},
	}
}

// New returns a scheme with the types of the standalone server, the meta types
// that requests and watches need, the defaults of the kinds, and the field
// labels that kube-apiserver accepts for each of them. The scheme is safe for
// concurrent reads; callers must not register more types once it is in use.
func New() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, g := range groups() {
		s.AddKnownTypes(g.version, g.types...)
		internal := g.internal
		if internal == nil {
			internal = g.types
		}
		s.AddKnownTypes(schema.GroupVersion{Group: g.version.Group, Version: runtime.APIVersionInternal}, internal...)
		metav1.AddToGroupVersion(s, g.version)
		if err := s.SetVersionPriority(g.version); err != nil {
			return nil, fmt.Errorf("registering %s: %w", g.version, err)
		}
	}
	if err := metav1.AddMetaToScheme(s); err != nil {
		return nil, fmt.Errorf("registering the meta types: %w", err)
	}
	if err := addEventConversions(s); err != nil {
		return nil, err
	}
	if err := addFieldLabels(s); err != nil {
		return nil, err
	}
	addDefaults(s)
	return s, nil
}

// NewCodecs returns the codec factory of a scheme made by New. It speaks JSON,
// YAML and protobuf.
func NewCodecs(s *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(s)
}

// Versions returns the groups and versions of the scheme, each of which is also
// the version in which its objects are stored.
func Versions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, g := range groups() {
		versions = append(versions, g.version)
	}
	return versions
}
