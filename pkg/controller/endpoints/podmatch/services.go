// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podmatch finds the Services that a change of a pod concerns, and the
// pods of a Service.
package podmatch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	endpointsliceutil "k8s.io/endpointslice/util"
)

// Services returns the keys of the Services whose endpoints may change with the
// pod. It takes what an informer hands to its handlers; old is nil when the pod
// is new, current when it is gone.
func Services(services corelisters.ServiceLister, old, current any) sets.Set[string] {
	key := projection(old, current)
	keys, err := endpointsliceutil.GetServicesToUpdate(services, key)
	if err != nil {
		return nil // lists of a cache do not fail
	}
	return keys
}

// projection adds to the library's, which goes by what a kubelet does, the
// changes that only others make: a pod that ends without having been ready, one
// that gets its node after its address, one that has taken another's name.
func projection(old, current any) *endpointsliceutil.PodProjectionKey {
	key := endpointsliceutil.GetPodUpdateProjectionKey(old, current)
	oldPod, ok := old.(*corev1.Pod)
	if !ok {
		return key
	}
	pod, ok := current.(*corev1.Pod)
	if !ok || oldPod.UID == pod.UID && oldPod.Spec.NodeName == pod.Spec.NodeName && ended(oldPod) == ended(pod) {
		return key
	}
	if key == nil {
		return &endpointsliceutil.PodProjectionKey{Namespace: pod.Namespace, Labels: labels.Set(pod.Labels)}
	}
	key.PodChanged = true
	return key
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
