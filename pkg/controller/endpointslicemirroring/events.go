// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice"
)

// correctionDelay is how long a change of a slice waits: the tracker may not
// know yet that it is our own, and with another writer that insists, it bounds
// the quarrel to ten rounds a second.
const correctionDelay = 100 * time.Millisecond

func (c *Controller) addHandlers(services, endpoints, slices cache.SharedIndexInformer) error {
	for _, h := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{services, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(service any) { c.onService(nil, service) },
			UpdateFunc: c.onService,
			DeleteFunc: func(service any) { c.onService(service, nil) },
		}},
		{endpoints, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(endpoints any) { c.onEndpoints(nil, endpoints) },
			UpdateFunc: c.onEndpoints,
			DeleteFunc: func(endpoints any) { c.onEndpoints(endpoints, nil) },
		}},
		{slices, cache.ResourceEventHandlerFuncs{
			AddFunc:    c.onSliceAdd,
			UpdateFunc: c.onSliceUpdate,
			DeleteFunc: c.onSliceDelete,
		}},
	} {
		if err := c.handlers.Add(h.informer, h.handler); err != nil {
			return fmt.Errorf("watch for the endpointslicemirroring controller: %w", err)
		}
	}
	return nil
}

// object is what an informer hands to a handler, or nil.
func object[T any](given any) *T {
	if unknown, ok := given.(cache.DeletedFinalStateUnknown); ok {
		given = unknown.Obj
	}
	typed, _ := given.(*T)
	return typed
}

// onService queues Services that get or lose their selector, come without one,
// or go.
func (c *Controller) onService(old, current any) {
	previous, service := object[corev1.Service](old), object[corev1.Service](current)
	byHand := func(service *corev1.Service) bool { return service != nil && service.Spec.Selector == nil }
	if previous != nil && service != nil && byHand(previous) == byHand(service) && previous.UID == service.UID {
		return
	}
	for _, service := range []*corev1.Service{previous, service} {
		if byHand(service) {
			c.queue.Add(cache.MetaObjectToName(service).String())
		}
	}
}

// onEndpoints queues Endpoints that are to be copied, or were.
func (c *Controller) onEndpoints(old, current any) {
	for _, endpoints := range []*corev1.Endpoints{object[corev1.Endpoints](old), object[corev1.Endpoints](current)} {
		if endpoints != nil && mirrored(endpoints) {
			c.queue.Add(cache.MetaObjectToName(endpoints).String())
		}
	}
}

func managed(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

func (c *Controller) onSliceAdd(given any) {
	if slice := object[discoveryv1.EndpointSlice](given); slice != nil && managed(slice) && c.tracker.ShouldSync(slice) {
		c.correct(slice)
	}
}

func (c *Controller) onSliceUpdate(old, current any) {
	previous, slice := object[discoveryv1.EndpointSlice](old), object[discoveryv1.EndpointSlice](current)
	switch {
	case previous == nil || slice == nil:
	case previous.Labels[discoveryv1.LabelServiceName] != slice.Labels[discoveryv1.LabelServiceName]:
		c.correct(previous)
		c.correct(slice)
	case managed(previous) != managed(slice), managed(slice) && c.tracker.ShouldSync(slice):
		c.correct(slice)
	}
}

func (c *Controller) onSliceDelete(given any) {
	slice := object[discoveryv1.EndpointSlice](given)
	if slice == nil || !managed(slice) {
		return
	}
	// The tracker knows only what this controller has written since its start.
	if expected := c.tracker.Has(slice) && c.tracker.HandleDeletion(slice); !expected {
		c.correct(slice)
	}
}

// correct looks at the copies of the Endpoints that the slice belongs to.
func (c *Controller) correct(slice *discoveryv1.EndpointSlice) {
	if key, err := endpointslice.ServiceControllerKey(slice); err == nil {
		c.queue.AddAfter(key, correctionDelay)
	}
}
