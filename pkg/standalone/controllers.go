// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpointslice"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpointslicemirroring"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/garbagecollector"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/namespace"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/servicegrid"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned"
	gridscheme "github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned/scheme"
	gridinformers "github.com/grid-apiserver/grid-apiserver/pkg/generated/informers/externalversions"
)

// workers is how many objects each controller handles at a time. The controllers
// share the process with the server that they wait for.
const workers = 2

// controllers are what kube-controller-manager is to a cluster.
type controllers struct {
	all         []controller
	core        informers.SharedInformerFactory
	grids       gridinformers.SharedInformerFactory
	client      kubernetes.Interface
	broadcaster record.EventBroadcaster
	// kindsChanged tells that what is served may have changed. Capacity 1.
	kindsChanged chan struct{}
	running      sync.WaitGroup

	mu             sync.Mutex
	started, ended bool
}

type controller struct {
	name string
	run  func(ctx context.Context, workers int) error
}

// newControllers makes them; end must follow. The informers of core
// are also those of the server's admission.
func newControllers(ctx context.Context, config *rest.Config, client kubernetes.Interface, core informers.SharedInformerFactory, settings *completedConfig) (*controllers, error) {
	c := &controllers{core: core, client: client, broadcaster: record.NewBroadcaster(record.WithContext(ctx)), kindsChanged: make(chan struct{}, 1)}
	gridClient, err := versioned.NewForConfig(jsonOnly(config))
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c.grids = gridinformers.NewSharedInformerFactory(gridClient, settings.ResyncPeriod)
	steps := []func() error{func() error { return c.addNamespaces(metadataClient) }}
	if !settings.WithoutControllers {
		steps = append(steps, c.addEndpoints, c.addSlices, c.addMirroring,
			func() error { return c.addServiceGrids(gridClient) },
			func() error { return c.addGarbageCollector(metadataClient) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			c.end()
			return nil, fmt.Errorf("making the controllers: %w", err)
		}
	}
	return c, nil
}

// jsonOnly is for the kinds that have no protobuf form.
func jsonOnly(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.ContentType, out.AcceptContentTypes = "", ""
	return out
}

func (c *controllers) recorder(types *runtime.Scheme, component string) record.EventRecorder {
	return c.broadcaster.NewRecorder(types, corev1.EventSource{Component: component})
}

func (c *controllers) addNamespaces(client metadata.Interface) error {
	// No kubelet will ever end a pod.
	atOnce := int64(0)
	made, err := namespace.New(c.core.Core().V1().Namespaces(), c.client.CoreV1(), client, c.client.Discovery(),
		namespace.Options{PodGracePeriodSeconds: &atOnce})
	if err == nil {
		c.all = append(c.all, controller{"namespace", made.Run})
	}
	return err
}

func (c *controllers) addGarbageCollector(client metadata.Interface) error {
	made, err := garbagecollector.New(client, c.client.Discovery(), garbagecollector.Options{
		Discover: c.kindsChanged, Recorder: c.recorder(scheme.Scheme, "garbage-collector-controller"),
	})
	if err == nil {
		c.all = append(c.all, controller{"garbagecollector", made.Run})
	}
	return err
}

func (c *controllers) addEndpoints() error {
	v1 := c.core.Core().V1()
	made, err := endpoints.New(c.client.CoreV1(), c.recorder(scheme.Scheme, endpoints.Component), v1.Services(), v1.Pods(), v1.Endpoints())
	if err == nil {
		made.KeepLeftovers() // the store is as new as the controller
		c.all = append(c.all, controller{"endpoints", made.Run})
	}
	return err
}

func (c *controllers) addSlices() error {
	v1 := c.core.Core().V1()
	made, err := endpointslice.New(endpointslice.Config{
		Client: c.client, Recorder: c.recorder(scheme.Scheme, endpointslice.Component),
		Services: v1.Services(), Pods: v1.Pods(), Nodes: v1.Nodes(), Slices: c.core.Discovery().V1().EndpointSlices(),
	})
	if err == nil {
		c.all = append(c.all, controller{"endpointslice", made.Run})
	}
	return err
}

func (c *controllers) addMirroring() error {
	v1 := c.core.Core().V1()
	made, err := endpointslicemirroring.New(c.client.DiscoveryV1(), c.recorder(scheme.Scheme, endpointslicemirroring.Component), v1.Services(), v1.Endpoints(), c.core.Discovery().V1().EndpointSlices())
	if err == nil {
		c.all = append(c.all, controller{"endpointslicemirroring", made.Run})
	}
	return err
}

func (c *controllers) addServiceGrids(client versioned.Interface) error {
	made, err := servicegrid.New(c.client.CoreV1(), client.SuperedgeV1(), c.recorder(gridscheme.Scheme, servicegrid.Component), c.grids.Superedge().V1().ServiceGrids(), c.core.Core().V1().Services())
	if err == nil {
		c.all = append(c.all, controller{"servicegrid", made.Run})
	}
	return err
}

// start runs them until ctx ends. A server that stops while it starts may call it
// after end.
func (c *controllers) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.started = true
	c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	c.core.Start(ctx.Done())
	c.grids.Start(ctx.Done())
	for _, one := range c.all {
		c.running.Go(func() {
			if err := one.run(ctx, workers); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "A controller has ended", "controller", one.name)
			}
		})
	}
}

// also runs what ends by itself, with the others, unless they have ended.
func (c *controllers) also(run func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.running.Go(run)
	}
}

// discoverKinds has those that follow all kinds look at them again.
func (c *controllers) discoverKinds() {
	select {
	case c.kindsChanged <- struct{}{}:
	default: // they are about to
	}
}

// abandon lets go of controllers that were not started: what they hold ends with Run.
func (c *controllers) abandon() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, one := range c.all {
		_ = one.run(ended, 1)
	}
}

// end returns when all have ended, after the context of start has, or lets go of
// them if they were not started. It may be called more than once.
func (c *controllers) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if !c.started {
		c.abandon()
	}
	c.running.Wait()
	c.core.Shutdown()
	c.grids.Shutdown()
	c.broadcaster.Shutdown()
}
