// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"fmt"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	superedgev1client "github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned/typed/superedge/v1"
	superedgeinformers "github.com/grid-apiserver/grid-apiserver/pkg/generated/informers/externalversions/superedge/v1"
	superedgelisters "github.com/grid-apiserver/grid-apiserver/pkg/generated/listers/superedge/v1"
)

// Component is the source of the controller's Events.
const Component = "servicegrid-controller"

const (
	// name is that of the queue in metrics, and of the logger.
	name = "servicegrid"

	// A sync that failed is repeated after the first time, then after twice that, up to the second. A template that
	// the API server refuses can become acceptable without an event here (a node port comes free), so it is tried
	// again too, but seldom.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Controller makes Services of ServiceGrids.
type Controller struct {
	client     corev1client.ServicesGetter
	gridClient superedgev1client.ServiceGridsGetter
	recorder   record.EventRecorder

	grids        superedgelisters.ServiceGridLister
	services     corelisters.ServiceLister
	byController cache.Indexer
	synced       []cache.DoneChecker // tests inject their own

	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	clock clock.PassiveClock
}

// New makes a controller and adds its handlers to the informers, and an index to that of the Services. The caller starts
// them afterwards. The scheme of the recorder must know ServiceGrids. What New starts ends with Run, so Run must be
// called, with a context that has ended if need be.
func New(
	client corev1client.ServicesGetter,
	gridClient superedgev1client.ServiceGridsGetter,
	recorder record.EventRecorder,
	grids superedgeinformers.ServiceGridInformer,
	services coreinformers.ServiceInformer,
) (*Controller, error) {
	if err := services.Informer().AddIndexers(cache.Indexers{controllerIndex: indexByController}); err != nil {
		return nil, fmt.Errorf("index Services by their controller: %w", err)
	}
	c := &Controller{
		client:       client,
		gridClient:   gridClient,
		recorder:     recorder,
		grids:        grids.Lister(),
		services:     services.Lister(),
		byController: services.Informer().GetIndexer(),
		clock:        clock.RealClock{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name},
		),
	}
	for _, source := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{grids.Informer(), c.gridHandler()},
		{services.Informer(), c.serviceHandler()},
	} {
		registration, err := source.informer.AddEventHandler(source.handler)
		if err != nil {
			c.queue.ShutDown()
			return nil, fmt.Errorf("add an event handler: %w", err)
		}
		c.synced = append(c.synced, registration.HasSyncedChecker())
	}
	return c, nil
}

// Run syncs until ctx ends, and returns when its workers have ended.
func (c *Controller) Run(ctx context.Context, workers int) error {
	defer c.queue.ShutDown()
	logger := klog.LoggerWithName(klog.FromContext(ctx), name)
	ctx = klog.NewContext(ctx, logger)
	// Before that, every Service would seem to be missing.
	if !cache.WaitFor(ctx, "", c.synced...) {
		return nil
	}
	logger.Info("Starting the ServiceGrid controller", "workers", workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { wait.UntilWithContext(ctx, c.work, time.Second) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	logger.Info("Stopped the ServiceGrid controller")
	return nil
}

func (c *Controller) work(ctx context.Context) {
	for ctx.Err() == nil {
		if !c.next(ctx) {
			return
		}
	}
}

// next syncs the next key. It returns false when the queue is shut down.
func (c *Controller) next(ctx context.Context) bool {
	key, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(key)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "serviceGrid", key)
	start := c.clock.Now()
	err := c.sync(klog.NewContext(ctx, logger), key)
	logger.V(4).Info("Synced", "duration", c.clock.Since(start), "err", err)
	switch {
	case err == nil:
		c.queue.Forget(key)
		return true
	case !expected(err) && ctx.Err() == nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to sync, will try again", "serviceGrid", key)
	}
	c.queue.AddRateLimited(key)
	return true
}
