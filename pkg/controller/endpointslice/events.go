// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/podmatch"
)

// correctionDelay is how long a change of a slice waits: the tracker may not
// know yet that it is our own, and where another writer changes several slices,
// or insists, they are seen together.
const correctionDelay = 100 * time.Millisecond

func (c *Controller) addHandlers(config Config) error {
	for _, h := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{config.Services.Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    c.onService,
			UpdateFunc: func(_, service any) { c.onService(service) },
			DeleteFunc: c.onService,
		}},
		{config.Pods.Informer(), cache.ResourceEventHandlerDetailedFuncs{
			// At the start each Service is synced once, with all pods.
			AddFunc: func(pod any, isInInitialList bool) {
				if !isInInitialList {
					c.onPod(nil, pod)
				}
			},
			UpdateFunc: c.onPod,
			DeleteFunc: func(pod any) { c.onPod(pod, nil) },
		}},
		{config.Nodes.Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    c.onNodeAdd,
			UpdateFunc: c.onNodeUpdate,
			DeleteFunc: func(any) { c.zonesChanged() },
		}},
		{config.Slices.Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    c.onSliceAdd,
			UpdateFunc: c.onSliceUpdate,
			DeleteFunc: c.onSliceDelete,
		}},
	} {
		if err := c.handlers.Add(h.informer, h.handler); err != nil {
			return fmt.Errorf("watch for the endpointslice controller: %w", err)
		}
	}
	return nil
}

func (c *Controller) onService(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		c.queue.Add(key)
	}
}

func (c *Controller) onPod(old, current any) {
	for key := range podmatch.Services(c.services, old, current) {
		c.queue.Add(key)
	}
}

func (c *Controller) onSliceAdd(object any) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if ok && c.reconciler.ManagedByController(slice) && c.tracker.ShouldSync(slice) {
		c.correct(slice)
	}
}

func (c *Controller) onSliceUpdate(old, current any) {
	previous, ok := old.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	slice, ok := current.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	switch {
	case previous.Labels[discoveryv1.LabelServiceName] != slice.Labels[discoveryv1.LabelServiceName]:
		c.correct(previous)
		c.correct(slice)
	case c.reconciler.ManagedByChanged(previous, slice),
		c.reconciler.ManagedByController(slice) && c.tracker.ShouldSync(slice):
		c.correct(slice)
	}
}

func (c *Controller) onSliceDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || !c.reconciler.ManagedByController(slice) {
		return
	}
	// The tracker knows only what this controller has written since its start.
	if expected := c.tracker.Has(slice) && c.tracker.HandleDeletion(slice); !expected {
		c.correct(slice)
	}
}

// correct looks at the slices of the Service that the slice belongs to.
func (c *Controller) correct(slice *discoveryv1.EndpointSlice) {
	if key, err := endpointslice.ServiceControllerKey(slice); err == nil {
		c.queue.AddAfter(key, correctionDelay)
	}
}
