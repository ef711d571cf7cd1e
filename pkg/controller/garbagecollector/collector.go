// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package garbagecollector deletes objects whose owners are gone, and carries
// out deletions that wait for dependents or set them free.
//
// The rules are those of kube-controller-manager:
//   - An object with ownerReferences goes when none of its owners is left. As
//     long as one is, references to owners that are gone are taken out.
//   - An owner with the finalizer "foregroundDeletion" is held until the
//     dependents whose references block it are gone; they are deleted for it.
//   - An owner with the finalizer "orphan" is held until no dependent refers to
//     it any more.
//   - An owner is looked for in the namespace of the dependent, or among the
//     cluster-scoped objects. A reference into another namespace dangles, and is
//     told in an Event. A cluster-scoped object that refers to a namespaced owner
//     is left alone.
//
// Every kind that can be listed, watched and deleted is followed, as metadata
// only, and of that no more is kept than the graph needs. The graph says what to
// look at; before anything is deleted the object and its owners are read from
// the API server, so a graph that lags behind deletes nothing by mistake. An
// owner that is not in the graph is looked up until it is, or is gone.
package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

const (
	// defaultInterval is how often the kinds are discovered again. It is how long
	// the first objects of a new kind may be without a garbage collector.
	defaultInterval = 5 * time.Second
	// initialSync bounds the wait for the first content of all kinds: one that
	// cannot be listed shall not stop the rest. kube-controller-manager takes the
	// same time.
	initialSync = 30 * time.Second
	// firstRetry and slowestRetry bound the time until an object is looked at
	// again after an error, or while an owner of it has not been observed. That
	// may last for ever, for a reference to a kind that nobody serves.
	firstRetry   = 5 * time.Millisecond
	slowestRetry = 5 * time.Minute
	// absentOwners is how many owners are remembered to be gone: those whose
	// dependents are being deleted. Forgetting one costs a GET.
	absentOwners = 500
)

// Discovery finds the kinds that the server has. It must not be a cached one.
type Discovery interface {
	// ServerGroupsAndResourcesWithContext returns what it could find also with an
	// error.
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Options change what is followed. The zero value is right for most.
type Options struct {
	// Ignored are resources that are never followed. nil stands for events, which
	// are many, own nothing and are owned by nothing.
	Ignored []schema.GroupResource
	// Interval is the time between two discoveries. 0: 5 s.
	Interval time.Duration
	// Discover starts a discovery at once, for instance when a
	// CustomResourceDefinition has changed. nil: there are only regular ones.
	Discover <-chan struct{}
	// Recorder gets an Event about each reference into another namespace. nil:
	// they are logged only.
	Recorder record.EventRecorder
}

// Collector is the garbage collector.
type Collector struct {
	client    metadata.Interface
	discovery Discovery
	options   Options

	graph    *graph
	monitors *monitors
	queue    workqueue.TypedRateLimitingInterface[types.UID] // made by Run
	// absent remembers identities of owners that do not exist. A uid is never
	// used again, so they will not either.
	absent *lru.Cache
}

// New returns a collector that works when Run is called. The client should not
// be limited to few requests per second. New starts nothing: a collector that
// never runs may be dropped.
func New(client metadata.Interface, discovery Discovery, options Options) (*Collector, error) {
	if client == nil || discovery == nil {
		return nil, errors.New("garbage collector: a metadata client and discovery are required")
	}
	if options.Ignored == nil {
		options.Ignored = []schema.GroupResource{corev1.Resource("events"), {Group: eventsv1.GroupName, Resource: "events"}}
	}
	if options.Interval <= 0 {
		options.Interval = defaultInterval
	}
	c := &Collector{
		client:    client,
		discovery: discovery,
		options:   options,
		graph:     newGraph(),
		absent:    lru.New(absentOwners),
	}
	c.monitors = newMonitors(c)
	return c, nil
}

// HasSynced reports whether the kinds have been discovered and the content of
// all of them has been read once. It may become false again when a kind appears.
func (c *Collector) HasSynced() bool { return c.monitors.synced() }

// Run works until the context ends, and returns when all its goroutines have
// stopped. It may be called once.
func (c *Collector) Run(ctx context.Context, workers int) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), "garbagecollector")
	ctx = klog.NewContext(ctx, logger)
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, slowestRetry))
	var running sync.WaitGroup
	defer c.monitors.stop()
	defer running.Wait()
	defer c.queue.ShutDown()

	running.Go(func() { c.discover(ctx) })
	timeout := time.NewTimer(initialSync)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-c.monitors.first:
	case <-timeout.C:
		logger.Info("Not all kinds could be read, collecting garbage among the others")
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

// discover keeps the monitors in step with the kinds of the server.
func (c *Collector) discover(ctx context.Context) {
	ticker := time.NewTicker(c.options.Interval)
	defer ticker.Stop()
	for {
		if err := c.monitors.sync(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Discovering the kinds to collect failed")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.options.Discover:
		}
	}
}

func (c *Collector) next(ctx context.Context) bool {
	uid, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(uid)
	settled, err := c.process(ctx, uid)
	unknown := &unknownKindError{}
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &unknown):
		// It may come, and it may never have been there.
		klog.FromContext(ctx).V(4).Info("An owner is of an unknown kind", "uid", uid, "err", err)
		c.queue.AddRateLimited(uid)
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Collecting an object failed", "uid", uid)
		c.queue.AddRateLimited(uid)
	case !settled:
		c.queue.AddRateLimited(uid)
	default:
		c.queue.Forget(uid)
	}
	return true
}

// apply carries out what a change of the graph asks for.
func (c *Collector) apply(ctx context.Context, e effects) {
	for _, id := range e.absent {
		c.absent.Add(id, nil)
	}
	for _, invalid := range e.invalid {
		text := fmt.Sprintf("ownerRef %s does not exist in namespace %q", invalid.owner, invalid.dependent.namespace)
		klog.FromContext(ctx).V(2).Info("An object refers to an owner in another namespace", "object", invalid.dependent, "owner", invalid.owner)
		if c.options.Recorder != nil {
			c.options.Recorder.Event(invalid.dependent.reference(), corev1.EventTypeWarning, "OwnerRefInvalidNamespace", text)
		}
	}
	for _, uid := range e.queue {
		c.queue.Add(uid)
	}
}
