// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/handlers"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/syncqueue"
)

const (
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by
	// of this controller's slices: kube-controller-manager's, so that either can
	// take over from the other without writing.
	ManagedBy = "endpointslicemirroring-controller.k8s.io"

	// Component is the source of the controller's Events.
	Component = "endpoint-slice-mirroring-controller"

	// maxPerSubset is kube-controller-manager's default. It is as many addresses
	// as an EndpointSlice can have.
	maxPerSubset = 1000
)

// errStale is why a sync waits: the cache has not seen our last writes.
var errStale = errors.New("the cache of endpointslices is out of date")

// Controller writes the EndpointSlices of Services without a selector.
type Controller struct {
	client   discoveryv1client.EndpointSlicesGetter
	recorder record.EventRecorder

	services  corelisters.ServiceLister
	endpoints corelisters.EndpointsLister
	slices    discoverylisters.EndpointSliceLister
	synced    []cache.DoneChecker // tests inject their own
	handlers  handlers.Handlers

	queue    *syncqueue.Queue
	tracker  *endpointsliceutil.EndpointSliceTracker
	patience *syncqueue.Patience

	reportedLock sync.Mutex
	reported     map[string]string // by key, the revision that Events were sent for
}

// New makes a controller and adds its handlers to the informers, which the
// caller starts. The recorder may be nil: then there are no Events. What New
// starts ends with Run, so Run must be called, with a context that has ended if
// need be.
func New(
	client discoveryv1client.EndpointSlicesGetter,
	recorder record.EventRecorder,
	services coreinformers.ServiceInformer,
	endpoints coreinformers.EndpointsInformer,
	slices discoveryinformers.EndpointSliceInformer,
) (*Controller, error) {
	if recorder == nil {
		recorder = &record.FakeRecorder{}
	}
	c := &Controller{
		client:    client,
		recorder:  recorder,
		services:  services.Lister(),
		endpoints: endpoints.Lister(),
		slices:    slices.Lister(),
		synced: []cache.DoneChecker{
			services.Informer().HasSyncedChecker(),
			endpoints.Informer().HasSyncedChecker(),
			slices.Informer().HasSyncedChecker(),
		},
		tracker:  endpointsliceutil.NewEndpointSliceTracker(),
		patience: syncqueue.NewPatience(),
		reported: map[string]string{},
	}
	c.queue = syncqueue.New("endpointslicemirroring", c.sync)
	if err := c.addHandlers(services.Informer(), endpoints.Informer(), slices.Informer()); err != nil {
		return nil, err
	}
	return c, nil
}

// Run works until ctx ends and returns when nothing is under way any more. It
// waits for the informers first, and fails if ctx ends before they have synced.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), "endpointslicemirroring")
	ctx = klog.NewContext(ctx, logger)
	defer c.handlers.Remove(logger)

	synced := cache.WaitFor(ctx, "", c.synced...)
	if synced {
		logger.V(2).Info("Controller started", "workers", workers)
	}
	c.queue.Run(ctx, workers)
	if !synced {
		return fmt.Errorf("informers of the endpointslicemirroring controller have not synced: %w", context.Cause(ctx))
	}
	logger.V(2).Info("Controller stopped")
	return nil
}

// sync makes the copies of one Endpoints object right.
func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	existing, err := c.slices.EndpointSlices(namespace).List(labels.Set{
		discoveryv1.LabelServiceName: name,
		discoveryv1.LabelManagedBy:   ManagedBy,
	}.AsSelectorPreValidated())
	if err != nil {
		return fmt.Errorf("list endpointslices of service %s from the cache: %w", key, err)
	}
	endpoints, service, err := c.source(namespace, name)
	if err != nil {
		return err
	}
	if endpoints == nil {
		c.report(key, nil, Changes{})
		c.tracker.DeleteService(namespace, name)
		c.patience.Regain(key)
		return c.apply(ctx, namespace, key, Changes{Delete: existing}, false)
	}
	if c.tracker.StaleSlices(service, existing) {
		if !c.patience.Lost(key) {
			return errStale
		}
		klog.FromContext(ctx).Info("The cache has not followed, it is taken for right", "endpoints", klog.KObj(endpoints))
		c.tracker.DeleteService(namespace, name)
	}
	c.patience.Regain(key)
	changes := Plan(endpoints, existing, maxPerSubset)
	c.report(key, endpoints, changes)
	for _, slice := range changes.Unchanged {
		if !c.tracker.Has(slice) {
			c.tracker.Update(slice)
		}
	}
	return c.apply(ctx, namespace, key, changes, true)
}

// source returns the Endpoints to copy and their Service, or nothing if the
// Service is none whose Endpoints people write.
func (c *Controller) source(namespace, name string) (*corev1.Endpoints, *corev1.Service, error) {
	endpoints, err := c.endpoints.Endpoints(namespace).Get(name)
	if err != nil || !mirrored(endpoints) {
		return nil, nil, ignoreNotFound(err)
	}
	service, err := c.services.Services(namespace).Get(name)
	if err != nil || service.Spec.Selector != nil {
		return nil, nil, ignoreNotFound(err)
	}
	return endpoints, service, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
