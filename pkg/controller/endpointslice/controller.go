// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

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
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/metrics"
	"k8s.io/endpointslice/topologycache"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/handlers"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/podmatch"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/syncqueue"
)

const (
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by
	// of this controller's slices: kube-controller-manager's, so that either can
	// take over from the other without writing.
	ManagedBy = "endpointslice-controller.k8s.io"

	// Component is the source of the controller's Events.
	Component = "endpoint-slice-controller"

	// DefaultMaxEndpointsPerSlice is kube-controller-manager's default.
	DefaultMaxEndpointsPerSlice = 100
)

// errStale is why a sync waits: the cache has not seen our last writes.
var errStale = errors.New("the cache of endpointslices is out of date")

// Controller writes the EndpointSlices of Services with a selector.
type Controller struct {
	recorder record.EventRecorder

	services corelisters.ServiceLister
	pods     *podmatch.Pods
	nodes    corelisters.NodeLister
	slices   discoverylisters.EndpointSliceLister
	synced   []cache.DoneChecker // tests inject their own
	handlers handlers.Handlers

	queue      *syncqueue.Queue
	reconciler *endpointslice.Reconciler
	tracker    *endpointsliceutil.EndpointSliceTracker
	triggers   *endpointsliceutil.TriggerTimeTracker
	topology   *topologycache.TopologyCache
	zones      chan struct{} // holds a token when nodes have changed
	failures   *failures
	patience   *syncqueue.Patience
}

// Config is what a Controller works with. The caller starts the informers.
type Config struct {
	Client   kubernetes.Interface
	Recorder record.EventRecorder // nil: no Events

	Services coreinformers.ServiceInformer
	Pods     coreinformers.PodInformer
	Nodes    coreinformers.NodeInformer
	Slices   discoveryinformers.EndpointSliceInformer

	MaxEndpointsPerSlice int32 // 0: DefaultMaxEndpointsPerSlice
}

// New makes a controller and adds its handlers to the informers. What New starts
// ends with Run, so Run must be called, with a context that has ended if need be.
func New(config Config) (*Controller, error) {
	if config.Recorder == nil {
		config.Recorder = &record.FakeRecorder{}
	}
	if config.MaxEndpointsPerSlice == 0 {
		config.MaxEndpointsPerSlice = DefaultMaxEndpointsPerSlice
	}
	metrics.RegisterMetrics()
	pods, err := podmatch.NewPods(config.Pods.Informer())
	if err != nil {
		return nil, err
	}
	c := &Controller{
		recorder: config.Recorder,
		services: config.Services.Lister(),
		pods:     pods,
		nodes:    config.Nodes.Lister(),
		slices:   config.Slices.Lister(),
		synced: []cache.DoneChecker{
			config.Services.Informer().HasSyncedChecker(),
			config.Pods.Informer().HasSyncedChecker(),
			config.Nodes.Informer().HasSyncedChecker(),
			config.Slices.Informer().HasSyncedChecker(),
		},
		tracker:  endpointsliceutil.NewEndpointSliceTracker(),
		triggers: endpointsliceutil.NewTriggerTimeTracker(),
		topology: topologycache.NewTopologyCache(),
		zones:    make(chan struct{}, 1),
		failures: newFailures(),
		patience: syncqueue.NewPatience(),
	}
	c.reconciler = endpointslice.NewReconciler(
		config.Client, c.nodes, config.MaxEndpointsPerSlice, c.tracker, c.topology, c.recorder, ManagedBy,
		endpointslice.WithPreferSameTrafficDistributionEnabled(true))
	c.queue = syncqueue.New("endpointslices", c.sync)
	if err := c.addHandlers(config); err != nil {
		return nil, err
	}
	return c, nil
}

// Run works until ctx ends and returns when nothing is under way any more. It
// waits for the informers first, and fails if ctx ends before they have synced.
// A request under way is not cut off when ctx ends: it ends with the client's
// own timeout.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), "endpointslices")
	ctx = klog.NewContext(ctx, logger)
	defer c.handlers.Remove(logger)

	synced := cache.WaitFor(ctx, "", c.synced...)
	var running sync.WaitGroup
	if synced {
		logger.V(2).Info("Controller started", "workers", workers)
		c.noteZones(logger) // before the first hints are computed
		running.Go(func() { c.followZones(ctx) })
	}
	c.queue.Run(ctx, workers)
	running.Wait()
	if !synced {
		return fmt.Errorf("informers of the endpointslice controller have not synced: %w", context.Cause(ctx))
	}
	logger.V(2).Info("Controller stopped")
	return nil
}

// sync makes the slices of one Service right, and says in a metric how it went.
func (c *Controller) sync(ctx context.Context, key string) error {
	err := c.reconcile(ctx, key)
	outcome := "success"
	switch {
	case errors.Is(err, errStale):
		outcome = "stale"
	case err != nil:
		outcome = "error"
	}
	metrics.EndpointSliceSyncs.WithLabelValues(outcome).Inc()
	return err
}

func (c *Controller) reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.forget(key, namespace, name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get service %s from the cache: %w", key, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return nil
	}
	pods, err := c.pods.Of(service)
	if err != nil {
		return err
	}
	existing, err := c.slicesOf(service)
	if err != nil {
		return err
	}
	if c.tracker.StaleSlices(service, existing) {
		if !c.patience.Lost(key) {
			return errStale
		}
		klog.FromContext(ctx).Info("The cache has not followed, it is taken for right", "service", klog.KObj(service))
		c.tracker.DeleteService(namespace, name)
	}
	c.patience.Regain(key)

	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(namespace, service, pods)
	err = c.reconciler.Reconcile(quiet(klog.FromContext(ctx)), service, pods, existing, trigger)
	if c.failures.changed(key, err) && err != nil {
		c.recorder.Eventf(service, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s: %v", key, err)
	}
	if err != nil {
		return fmt.Errorf("reconcile endpointslices of service %s: %w", key, err)
	}
	return nil
}

// quiet is for the library, which logs for each pod and node, at each sync, what
// an operator need not know.
func quiet(logger klog.Logger) klog.Logger {
	return logger.V(4)
}

// slicesOf returns the Service's slices of this controller but those that are
// being deleted. They are copies as far as the reconciler writes into them: it
// sorts the ports and the addresses of an endpoint in place.
func (c *Controller) slicesOf(service *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	cached, err := c.slices.EndpointSlices(service.Namespace).List(labels.Set{
		discoveryv1.LabelServiceName: service.Name,
		discoveryv1.LabelManagedBy:   ManagedBy,
	}.AsSelectorPreValidated())
	if err != nil {
		return nil, fmt.Errorf("list endpointslices of service %s/%s from the cache: %w", service.Namespace, service.Name, err)
	}
	existing := make([]*discoveryv1.EndpointSlice, 0, len(cached))
	for _, slice := range cached {
		if slice.DeletionTimestamp == nil {
			existing = append(existing, sortable(slice))
		}
	}
	return existing, nil
}

func (c *Controller) forget(key, namespace, name string) {
	c.triggers.DeleteService(namespace, name)
	c.reconciler.DeleteService(namespace, name)
	c.tracker.DeleteService(namespace, name)
	c.failures.changed(key, nil)
	c.patience.Regain(key)
}
