// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/podmatch"
)

const (
	leaderAnnotation = resourcelock.LeaderElectionRecordAnnotationKey

	// correctionDelay is how long what another writer has made of the Endpoints
	// stays at least. With one that insists, it bounds the quarrel to ten
	// rounds a second.
	correctionDelay = 100 * time.Millisecond
)

func (c *Controller) addHandlers(services, pods, endpoints cache.SharedIndexInformer) error {
	for _, h := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{services, cache.ResourceEventHandlerFuncs{
			AddFunc:    c.onService,
			UpdateFunc: func(_, service any) { c.onService(service) },
			DeleteFunc: c.onService,
		}},
		{pods, cache.ResourceEventHandlerDetailedFuncs{
			// At the start each Service is synced once, with all pods.
			AddFunc: func(pod any, isInInitialList bool) {
				if !isInInitialList {
					c.onPod(nil, pod)
				}
			},
			UpdateFunc: c.onPod,
			DeleteFunc: func(pod any) { c.onPod(pod, nil) },
		}},
		{endpoints, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(endpoints any) { c.onEndpoints(nil, endpoints) },
			UpdateFunc: c.onEndpoints,
			DeleteFunc: c.onEndpointsDelete,
		}},
	} {
		if err := c.handlers.Add(h.informer, h.handler); err != nil {
			return fmt.Errorf("watch for the endpoints controller: %w", err)
		}
	}
	return nil
}

func (c *Controller) onService(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		c.queue.Add(key)
	}
}

// onPod queues the Services that select the pod, or did, if the change matters
// to them. The pod is in the cache already, and a Service that is not will be
// queued by its own event, so nothing is missed in between.
func (c *Controller) onPod(old, current any) {
	for key := range podmatch.Services(c.services, old, current) {
		c.queue.Add(key)
	}
}

// onEndpoints queues what somebody else has written. Endpoints without a
// Service are not touched here: those of a leader election would be deleted.
func (c *Controller) onEndpoints(old, current any) {
	endpoints, ok := current.(*corev1.Endpoints)
	if !ok {
		return
	}
	if previous, ok := old.(*corev1.Endpoints); ok && previous.ResourceVersion == endpoints.ResourceVersion {
		return // a resync
	}
	if !c.written.own(cache.MetaObjectToName(endpoints).String(), endpoints.ResourceVersion) {
		c.correct(endpoints)
	}
}

func (c *Controller) onEndpointsDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if endpoints, ok := object.(*corev1.Endpoints); ok {
		c.correct(endpoints)
	}
}

// correct looks at the Endpoints again if their Service is one of ours. If it
// is not in the cache yet, its own event will queue it.
func (c *Controller) correct(endpoints *corev1.Endpoints) {
	service, err := c.services.Services(endpoints.Namespace).Get(endpoints.Name)
	if err == nil && managed(service) {
		c.queue.AddAfter(cache.MetaObjectToName(endpoints).String(), correctionDelay)
	}
}
