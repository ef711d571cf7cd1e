// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// controllerIndex finds Services by the UID of their controller.
const controllerIndex = "servicegrid-controller-uid"

func indexByController(obj any) ([]string, error) {
	if service, ok := obj.(*corev1.Service); ok {
		if controller := metav1.GetControllerOfNoCopy(service); controller != nil {
			return []string{string(controller.UID)}, nil
		}
	}
	return nil, nil
}

// gridHandler queues each ServiceGrid of which something is heard, resyncs included, but for one thing: what has failed
// is tried again in its own time, which a resync must not cut short.
func (c *Controller) gridHandler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if grid, ok := undelete(obj).(*superedgev1.ServiceGrid); ok {
			c.queue.Add(cache.MetaObjectToName(grid))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(old, obj any) {
			before, wasGrid := old.(*superedgev1.ServiceGrid)
			after, nowGrid := obj.(*superedgev1.ServiceGrid)
			resync := wasGrid && nowGrid && before.ResourceVersion == after.ResourceVersion
			if !resync || c.queue.NumRequeues(cache.MetaObjectToName(after)) == 0 {
				enqueue(obj)
			}
		},
		DeleteFunc: enqueue,
	}
}

// serviceHandler queues the ServiceGrids that a changed Service concerns.
func (c *Controller) serviceHandler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if service, ok := undelete(obj).(*corev1.Service); ok {
			c.enqueueConcerned(service)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(old, obj any) {
			before, wasService := old.(*corev1.Service)
			after, isService := obj.(*corev1.Service)
			// A resync says nothing: the ServiceGrids have their own.
			if !wasService || !isService || before.ResourceVersion == after.ResourceVersion {
				return
			}
			c.enqueueConcerned(after)
		},
		DeleteFunc: enqueue,
	}
}

// enqueueConcerned queues the controller of service, the ServiceGrid that its label names, and the one whose Service
// has its name: a Service of somebody else may no longer be in the way.
func (c *Controller) enqueueConcerned(service *corev1.Service) {
	names := map[string]bool{service.Labels[superedgev1.LabelGridSelector]: true}
	if controller := metav1.GetControllerOfNoCopy(service); controller != nil && isGrid(controller) {
		names[controller.Name] = true
	}
	if grid, ok := strings.CutSuffix(service.Name, serviceSuffix); ok {
		names[grid] = true
	}
	for name := range names {
		// Most Services concern nobody. A ServiceGrid that is not there yet is queued when it comes.
		if grid, err := c.grids.ServiceGrids(service.Namespace).Get(name); err == nil {
			c.queue.Add(cache.MetaObjectToName(grid))
		}
	}
}

func isGrid(reference *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && gv.Group == gridKind.Group && reference.Kind == gridKind.Kind
}

// undelete returns the object of which an informer has missed the deletion.
func undelete(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}
