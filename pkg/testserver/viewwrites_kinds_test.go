// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

type written interface {
	runtime.Object
	metav1.Object
}

// writtenKind is a resource that is written to.
type writtenKind struct {
	resource, apiVersion, kind, path string
	client                           func(kubernetes.Interface) rest.Interface
	empty                            func() written
	make                             func(name string) written
	list                             func() runtime.Object
}

var writtenKinds = []writtenKind{
	{
		"services", "v1", "Service", "/api/v1/namespaces/default/services",
		func(c kubernetes.Interface) rest.Interface { return c.CoreV1().RESTClient() },
		func() written { return &corev1.Service{} },
		func(name string) written { return newService(name, nil) },
		func() runtime.Object { return &corev1.ServiceList{} },
	},
	{
		"endpointslices", "discovery.k8s.io/v1", "EndpointSlice", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
		func(c kubernetes.Interface) rest.Interface { return c.DiscoveryV1().RESTClient() },
		func() written { return &discoveryv1.EndpointSlice{} },
		func(name string) written {
			a, b := "a", "b"
			return &discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   []discoveryv1.Endpoint{{NodeName: &a, Addresses: []string{"10.0.0.1"}}, {NodeName: &b, Addresses: []string{"10.0.0.2"}}},
			}
		},
		func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
	},
	{
		"endpoints", "v1", "Endpoints", "/api/v1/namespaces/default/endpoints",
		func(c kubernetes.Interface) rest.Interface { return c.CoreV1().RESTClient() },
		func() written { return &corev1.Endpoints{} },
		func(name string) written {
			a, b := "a", "b"
			return &corev1.Endpoints{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
				Subsets: []corev1.EndpointSubset{{
					Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1", NodeName: &a}, {IP: "10.0.0.2", NodeName: &b}},
					Ports:     []corev1.EndpointPort{{Port: 80}},
				}},
			}
		},
		func() runtime.Object { return &corev1.EndpointsList{} },
	},
}

// marksOf are the writes that an object shows.
func marksOf(object metav1.Object) map[string]bool {
	marks := map[string]bool{}
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, mark) {
			marks[key] = true
		}
	}
	if service, ok := object.(*corev1.Service); ok {
		for _, condition := range service.Status.Conditions {
			marks[condition.Type] = true
		}
	}
	return marks
}

// endpointsIn counts the addresses of an object; two, unless a view was taken for the whole.
func endpointsIn(object runtime.Object) int {
	count := 0
	switch object := object.(type) {
	case *discoveryv1.EndpointSlice:
		return len(object.Endpoints)
	case *corev1.Endpoints:
		for _, subset := range object.Subsets {
			count += len(subset.Addresses)
		}
		return count
	}
	return 2
}

func gvkOf(object runtime.Object) (gvk schema.GroupVersionKind) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err == nil {
		gvk = kinds[0]
	}
	return gvk
}
