// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/handlers"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/podmatch"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/syncqueue"
)

// Component is the source of the controller's Events.
const Component = "endpoint-controller"

// errStale is why a sync waits: the cache has an object that we have replaced,
// or lacks one that exists.
var errStale = errors.New("the cache of endpoints is out of date")

// Controller writes the Endpoints of Services with a selector.
type Controller struct {
	client   corev1client.EndpointsGetter
	recorder record.EventRecorder

	services  corelisters.ServiceLister
	pods      *podmatch.Pods
	endpoints corelisters.EndpointsLister
	synced    []cache.DoneChecker // tests inject their own
	handlers  handlers.Handlers

	queue    *syncqueue.Queue
	written  *written
	triggers *endpointsliceutil.TriggerTimeTracker

	keepLeftovers bool
}

// New makes a controller and adds its handlers to the informers, which the
// caller starts. The recorder may be nil: then there are no Events. What New
// starts ends with Run, so Run must be called, with a context that has ended if
// need be.
func New(
	client corev1client.EndpointsGetter,
	recorder record.EventRecorder,
	services coreinformers.ServiceInformer,
	pods coreinformers.PodInformer,
	endpoints coreinformers.EndpointsInformer,
) (*Controller, error) {
	if recorder == nil {
		recorder = &record.FakeRecorder{}
	}
	podsOf, err := podmatch.NewPods(pods.Informer())
	if err != nil {
		return nil, err
	}
	c := &Controller{
		client:    client,
		recorder:  recorder,
		services:  services.Lister(),
		pods:      podsOf,
		endpoints: endpoints.Lister(),
		synced: []cache.DoneChecker{
			services.Informer().HasSyncedChecker(),
			pods.Informer().HasSyncedChecker(),
			endpoints.Informer().HasSyncedChecker(),
		},
		written:  newWritten(),
		triggers: endpointsliceutil.NewTriggerTimeTracker(),
	}
	c.queue = syncqueue.New("endpoints", c.sync)
	if err := c.addHandlers(services.Informer(), pods.Informer(), endpoints.Informer()); err != nil {
		return nil, err
	}
	return c, nil
}

// KeepLeftovers has Endpoints stay that have no Service when the controller
// starts. By default they are deleted, as kube-controller-manager does: their
// Service went while nobody looked. Where the store is as new as the controller
// there can be none, only those of a client that writes them before their
// Service. It must be called before Run.
func (c *Controller) KeepLeftovers() {
	c.keepLeftovers = true
}

// Run works until ctx ends and returns when nothing is under way any more. It
// waits for the informers first, and fails if ctx ends before they have synced.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), "endpoints")
	ctx = klog.NewContext(ctx, logger)
	defer c.handlers.Remove(logger)

	synced := cache.WaitFor(ctx, "", c.synced...)
	if synced {
		logger.V(2).Info("Controller started", "workers", workers)
		if !c.keepLeftovers {
			c.queueLeftovers(logger)
		}
	}
	c.queue.Run(ctx, workers)
	if !synced {
		return fmt.Errorf("informers of the endpoints controller have not synced: %w", context.Cause(ctx))
	}
	logger.V(2).Info("Controller stopped")
	return nil
}

// queueLeftovers finds the Endpoints whose Service was deleted while nobody
// looked. Those that serve a leader election never had a Service.
func (c *Controller) queueLeftovers(logger klog.Logger) {
	all, err := c.endpoints.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Cannot list endpoints, those without a service stay")
		return
	}
	for _, endpoints := range all {
		if _, elects := endpoints.Annotations[leaderAnnotation]; !elects {
			c.queue.Add(cache.MetaObjectToName(endpoints).String())
		}
	}
}

// sync makes the Endpoints of one Service right.
func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return c.remove(ctx, key, namespace, name)
	}
	if err != nil {
		return fmt.Errorf("get service %s from the cache: %w", key, err)
	}
	if !managed(service) {
		return nil
	}

	current, err := c.endpoints.Endpoints(namespace).Get(name)
	switch {
	case apierrors.IsNotFound(err):
		current = nil
	case err != nil:
		return fmt.Errorf("get endpoints %s from the cache: %w", key, err)
	case c.written.stale(key, current.ResourceVersion):
		return errStale
	}
	pods, err := c.pods.Of(service)
	if err != nil {
		return err
	}
	// Also where nothing will be written: the tracker compares with its last call.
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(namespace, service, pods)
	planned := Plan(current, service, pods, trigger)
	if planned == nil {
		return nil
	}
	return c.write(ctx, key, current, planned)
}

// remove deletes the Endpoints of a Service that is gone, whoever wrote them.
func (c *Controller) remove(ctx context.Context, key, namespace, name string) error {
	err := c.client.Endpoints(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete endpoints %s: %w", key, err)
	}
	c.triggers.DeleteService(namespace, name)
	c.written.forget(key)
	return nil
}

func (c *Controller) write(ctx context.Context, key string, current, planned *corev1.Endpoints) error {
	client := c.client.Endpoints(planned.Namespace)
	if current == nil {
		created, err := client.Create(ctx, planned, metav1.CreateOptions{})
		switch {
		case err == nil:
			c.written.note(key, "", created.ResourceVersion)
			return nil
		case apierrors.IsAlreadyExists(err):
			return errStale
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // it will not be possible any more
		}
		c.recorder.Eventf(planned, corev1.EventTypeWarning, "FailedToCreateEndpoint", "Failed to create endpoint for service %s: %v", key, err)
		return fmt.Errorf("create endpoints %s: %w", key, err)
	}
	updated, err := client.Update(ctx, planned, metav1.UpdateOptions{})
	if err != nil {
		if !apierrors.IsConflict(err) {
			c.recorder.Eventf(planned, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "Failed to update endpoint %s: %v", key, err)
		}
		return fmt.Errorf("update endpoints %s: %w", key, err)
	}
	c.written.note(key, current.ResourceVersion, updated.ResourceVersion)
	return nil
}
