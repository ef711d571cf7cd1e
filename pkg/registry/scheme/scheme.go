// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme holds the API types that a node's view is served from.
//
// Each type is registered twice: as its version, which clients see, and as
// runtime.APIVersionInternal, which the handlers of k8s.io/apiserver use as
// the hub of conversions. Both registrations name the same Go type, so that a
// conversion between them costs nothing and an object in the cache has the
// form in which it is encoded.
package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// groups lists what is served. It is a function because a scheme takes the
// objects only to read their types.
func groups() []group {
	return []group{
		{
			version: corev1.SchemeGroupVersion,
			types: []runtime.Object{
				&corev1.Service{}, &corev1.ServiceList{},
				&corev1.Endpoints{}, &corev1.EndpointsList{},
				&corev1.Node{}, &corev1.NodeList{},
				&corev1.Namespace{}, &corev1.NamespaceList{},
			},
		},
		{
			version: discoveryv1.SchemeGroupVersion,
			types:   []runtime.Object{&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}},
		},
		{
			version: networkingv1.SchemeGroupVersion,
			types:   []runtime.Object{&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{}},
		},
	}
}

type group struct {
	version schema.GroupVersion
	types   []runtime.Object
}

// NewScheme returns a scheme with the types of the view, the meta types that
// requests and watches need, and the field labels that kube-apiserver accepts
// for each resource. The scheme is safe for concurrent reads; callers must not
// register more types once it is in use.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, g := range groups() {
		s.AddKnownTypes(g.version, g.types...)
		s.AddKnownTypes(schema.GroupVersion{Group: g.version.Group, Version: runtime.APIVersionInternal}, g.types...)
		metav1.AddToGroupVersion(s, g.version)
		if err := s.SetVersionPriority(g.version); err != nil {
			return nil, fmt.Errorf("registering %s: %w", g.version, err)
		}
	}
	if err := metav1.AddMetaToScheme(s); err != nil {
		return nil, fmt.Errorf("registering the meta types: %w", err)
	}
	if err := addFieldLabels(s); err != nil {
		return nil, err
	}
	return s, nil
}

// NewCodecs returns the codec factory of a scheme made by NewScheme. It speaks
// JSON, YAML and protobuf.
func NewCodecs(s *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(s)
}

// NewStorageCodec returns the codec that storage layers ask for. It encodes
// every type of the view in its served version.
func NewStorageCodec(codecs serializer.CodecFactory) runtime.Codec {
	var versions []schema.GroupVersion
	for _, g := range groups() {
		versions = append(versions, g.version)
	}
	return codecs.LegacyCodec(versions...)
}
