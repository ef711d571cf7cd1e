// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// servicesEqual, slicesEqual and endpointsEqual report whether two objects are equal but for what
// no client acts on: resourceVersion, generation, managedFields and the
// annotation endpoints.kubernetes.io/last-change-trigger-time. They change with
// every write upstream, also with one that concerns another node unit only.
func servicesEqual(a, b *corev1.Service) bool {
	return metaEqual(&a.ObjectMeta, &b.ObjectMeta) &&
		equality.Semantic.DeepEqual(&a.Spec, &b.Spec) &&
		equality.Semantic.DeepEqual(&a.Status, &b.Status)
}

func slicesEqual(a, b *discoveryv1.EndpointSlice) bool {
	return metaEqual(&a.ObjectMeta, &b.ObjectMeta) &&
		a.AddressType == b.AddressType &&
		equality.Semantic.DeepEqual(a.Ports, b.Ports) &&
		endpointsListEqual(a.Endpoints, b.Endpoints)
}

// endpointsListEqual takes the short way where both lists share their elements,
// as they do when only the selection was computed anew.
func endpointsListEqual(a, b []discoveryv1.Endpoint) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !endpointShared(&a[i], &b[i]) && !equality.Semantic.DeepEqual(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// endpointShared reports whether two endpoints are shallow copies of one: then
// every pointer and every backing array in them is the same.
func endpointShared(a, b *discoveryv1.Endpoint) bool {
	return a.NodeName != nil && a.NodeName == b.NodeName &&
		len(a.Addresses) > 0 && len(a.Addresses) == len(b.Addresses) && &a.Addresses[0] == &b.Addresses[0] &&
		a.Conditions == b.Conditions && a.Hostname == b.Hostname && a.TargetRef == b.TargetRef &&
		a.Zone == b.Zone && a.Hints == b.Hints &&
		reflect.ValueOf(a.DeprecatedTopology).Pointer() == reflect.ValueOf(b.DeprecatedTopology).Pointer()
}

func endpointsEqual(a, b *corev1.Endpoints) bool {
	return metaEqual(&a.ObjectMeta, &b.ObjectMeta) && equality.Semantic.DeepEqual(a.Subsets, b.Subsets)
}

func metaEqual(a, b *metav1.ObjectMeta) bool {
	if !annotationsEqual(a.Annotations, b.Annotations) {
		return false
	}
	// Shallow copies: nothing that they point to is written.
	x, y := *a, *b
	for _, m := range []*metav1.ObjectMeta{&x, &y} {
		m.ResourceVersion, m.Generation, m.ManagedFields, m.Annotations = "", 0, nil, nil
	}
	return equality.Semantic.DeepEqual(&x, &y)
}

// uncomparedEqual reports whether two objects are equal in the fields that metaEqual
// leaves out and a client can write.
func uncomparedEqual(a, b *metav1.ObjectMeta) bool {
	return a.Annotations[corev1.EndpointsLastChangeTriggerTime] == b.Annotations[corev1.EndpointsLastChangeTriggerTime] &&
		equality.Semantic.DeepEqual(a.ManagedFields, b.ManagedFields)
}

func annotationsEqual(a, b map[string]string) bool {
	return countAnnotations(a) == countAnnotations(b) && annotationsContained(a, b)
}

func countAnnotations(a map[string]string) int {
	if _, ok := a[corev1.EndpointsLastChangeTriggerTime]; ok {
		return len(a) - 1
	}
	return len(a)
}

func annotationsContained(a, b map[string]string) bool {
	for key, value := range a {
		if key == corev1.EndpointsLastChangeTriggerTime {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}
