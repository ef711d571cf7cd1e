// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace empties namespaces that are being deleted, and then lets
// them go.
//
// A sync of a terminating namespace discovers what can be in it, since kinds
// come and go with CustomResourceDefinitions, deletes the pods, and when these
// are gone all the rest. What holds the namespace up is told in its conditions,
// with the types, reasons and messages that kube-controller-manager uses. As
// long as a part of the API could not be discovered the namespace stays: it
// might have content that nobody would ever find again. When nothing is left,
// also at a second look, the controller takes its finalizer out of
// spec.finalizers.
//
// Content that waits (for the finalizers of others, or for the grace period of
// a pod) is looked at again and again, at first after milliseconds, later every
// few seconds. A sync that finds what the last one found writes nothing.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// firstRetry is the time until a namespace with content left is looked at
	// again; it doubles each time. A garbage collector beside us needs a few
	// milliseconds for an object.
	firstRetry = 10 * time.Millisecond
	// slowestCheck bounds that time while content is left. It is what
	// kube-controller-manager waits for a finalizer: half of the 15 s that it
	// estimates, and one.
	slowestCheck = 8 * time.Second
	// slowestRetry bounds the time after errors, as in kube-controller-manager.
	slowestRetry = time.Minute
)

// Client is what the controller needs of a typed client.
type Client interface {
	corev1client.NamespacesGetter
	corev1client.PodsGetter
}

// Discovery finds the resources that a namespace can hold.
type Discovery interface {
	// ServerPreferredNamespacedResourcesWithContext returns what it could find
	// also with an error.
	ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error)
}

// Options change how namespaces are emptied. The zero value is right for one
// API server that sees its own deletions at once.
type Options struct {
	// Delay is the time between the news that a namespace is terminating and the
	// first deletion in it. With several API servers one of them may still admit
	// objects for a while: kube-controller-manager waits five seconds.
	Delay time.Duration
	// PodGracePeriodSeconds is the grace period that pods are deleted with. nil
	// leaves each pod its own: its kubelet then ends it. Where no kubelet runs,
	// a pod on a node would stay for ever; 0 removes it at once.
	PodGracePeriodSeconds *int64
	// Clock tells how long a namespace has been terminating. nil is the real one.
	Clock clock.WithTicker
}

// Controller deletes the content of terminating namespaces.
type Controller struct {
	client    Client
	metadata  metadata.Interface
	discovery Discovery
	options   Options
	clock     clock.WithTicker

	informer cache.SharedIndexInformer
	synced   cache.InformerSynced
	queue    workqueue.TypedRateLimitingInterface[string] // made by Run
	backoff  workqueue.TypedRateLimiter[string]
}

// New returns a controller that follows the informer once it runs. The caller
// starts the informer. The clients should not be limited to few requests per
// second: one sync sends one for each kind. New starts nothing: a controller that
// never runs may be dropped.
func New(namespaces coreinformers.NamespaceInformer, client Client, metadataClient metadata.Interface, discovery Discovery, options Options) (*Controller, error) {
	if client == nil || metadataClient == nil || discovery == nil {
		return nil, errors.New("namespace controller: a client, a metadata client and discovery are required")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	informer := namespaces.Informer()
	return &Controller{
		client:    client,
		metadata:  metadataClient,
		discovery: discovery,
		options:   options,
		clock:     options.Clock,
		informer:  informer,
		synced:    informer.HasSynced,
		backoff:   workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, slowestRetry),
	}, nil
}

func (c *Controller) enqueue(obj any) {
	if namespace, ok := obj.(*corev1.Namespace); ok && !namespace.DeletionTimestamp.IsZero() {
		c.queue.AddAfter(namespace.Name, c.options.Delay)
	}
}

// Run works until the context ends, and returns when all workers have stopped.
// It may be called once.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), "namespace")
	ctx = klog.NewContext(ctx, logger)
	c.queue = workqueue.NewTypedRateLimitingQueueWithConfig(c.backoff, workqueue.TypedRateLimitingQueueConfig[string]{Clock: c.clock})
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	handler, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, obj any) { c.enqueue(obj) },
	})
	if err != nil {
		return fmt.Errorf("following namespaces: %w", err)
	}
	defer func() { _ = c.informer.RemoveEventHandler(handler) }()

	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		if ctx.Err() != nil {
			return nil
		}
		return errors.New("namespace controller: the informer has not synced")
	}
	logger.V(2).Info("Controller started", "workers", workers)
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

func (c *Controller) next(ctx context.Context) bool {
	name, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(name)
	waiting, err := c.sync(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Deleting a namespace failed", "namespace", name)
		c.queue.AddRateLimited(name)
	case waiting:
		c.queue.AddAfter(name, min(c.backoff.When(name), slowestCheck))
	default:
		c.queue.Forget(name)
	}
	return true
}
