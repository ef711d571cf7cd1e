// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// exactContent returns the whole content of an object as a string, but for its
// resourceVersion. It is an encoding, so it is independent of how the view
// compares objects.
func exactContent(obj runtime.Object) string {
	c := shallowCopy(obj)
	c.SetResourceVersion("")
	content := encode(c)
	if slice, ok := obj.(*discoveryv1.EndpointSlice); ok && slice.Endpoints == nil {
		content += "null" // which protobuf does not tell from []
	}
	return content
}

// viewContent is exactContent without the fields that no client acts on.
func viewContent(obj runtime.Object) string {
	c := shallowCopy(obj)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	c.SetManagedFields(nil)
	annotations := maps.Clone(c.GetAnnotations())
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	c.SetAnnotations(annotations)
	return encode(c)
}

func encode(obj object) string {
	data, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		panic(fmt.Sprintf("encoding %s: %v", obj.GetName(), err))
	}
	return string(data)
}

// shallowCopy returns a copy whose metadata can be set.
func shallowCopy(obj runtime.Object) object {
	switch o := obj.(type) {
	case *corev1.Service:
		c := *o
		return &c
	case *discoveryv1.EndpointSlice:
		c := *o
		return &c
	case *corev1.Endpoints:
		c := *o
		return &c
	case *corev1.Node:
		c := *o
		return &c
	case *corev1.Namespace:
		c := *o
		return &c
	}
	panic(fmt.Sprintf("unexpected type %T", obj))
}
