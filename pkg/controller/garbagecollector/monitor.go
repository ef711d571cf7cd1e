// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// monitors follow one resource each and tell the graph.
type monitors struct {
	collector *Collector
	// first is closed when all resources of the first discovery have been read.
	first chan struct{}

	mu      sync.Mutex
	kinds   kinds
	running map[schema.GroupVersionResource]*monitor
	begun   bool // the first discovery has succeeded
	ready   bool // first is closed
}

func newMonitors(collector *Collector) *monitors {
	return &monitors{
		collector: collector,
		first:     make(chan struct{}),
		running:   map[schema.GroupVersionResource]*monitor{},
	}
}

// sync discovers the kinds, and stops and starts monitors. One sync may run at a
// time.
func (m *monitors) sync(ctx context.Context) error {
	groups, lists, err := m.collector.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return err
	}
	found := newKinds(groups, lists, m.collector.options.Ignored)
	if len(found.followed) == 0 {
		return errors.New("no resource that can be deleted, listed and watched was discovered")
	}

	m.mu.Lock()
	found.keep(m.kinds, failed)
	m.kinds = found
	var stopped []*monitor
	for resource, monitor := range m.running {
		if _, ok := found.followed[resource]; !ok {
			delete(m.running, resource)
			stopped = append(stopped, monitor)
		}
	}
	m.mu.Unlock()

	// Before others start: a monitor that ends late would put objects back under
	// its resource that are followed in another version already.
	for _, monitor := range stopped {
		monitor.stop()
		m.collector.apply(ctx, m.collector.graph.forget(monitor.resource))
	}

	m.mu.Lock()
	for resource, gvk := range found.followed {
		if m.running[resource] == nil {
			m.running[resource] = m.start(ctx, resource, gvk)
		}
	}
	m.begun = true
	m.mu.Unlock()
	m.check()
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Some groups could not be discovered, what is known of them is kept", "err", err)
	}
	return nil
}

// kind returns the kind that a reference names.
func (m *monitors) kind(apiVersion, name string) (kind, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kinds.known[schema.FromAPIVersionAndKind(apiVersion, name)]
	return k, ok
}

// followed returns the resources that are followed.
func (m *monitors) followed() map[schema.GroupVersionResource]schema.GroupVersionKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kinds.followed // never written to once it is here
}

func (m *monitors) synced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncedLocked()
}

func (m *monitors) syncedLocked() bool {
	if !m.begun {
		return false
	}
	for _, monitor := range m.running {
		select {
		case <-monitor.filled:
		default:
			return false
		}
	}
	return true
}

// check closes first when it is time.
func (m *monitors) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready && m.syncedLocked() {
		m.ready = true
		close(m.first)
	}
}

// stop ends all monitors. No sync may run.
func (m *monitors) stop() {
	m.mu.Lock()
	running := m.running
	m.running = map[schema.GroupVersionResource]*monitor{}
	m.mu.Unlock()
	for _, monitor := range running {
		monitor.stop()
	}
}

// monitor is the store of a reflector. What it is told goes into the graph, and
// nothing is kept beside.
type monitor struct {
	monitors *monitors
	ctx      context.Context // for logs and events; ends with the monitor
	resource schema.GroupVersionResource
	gvk      schema.GroupVersionKind

	once   sync.Once
	filled chan struct{}
	stop   func()
}

var _ cache.ReflectorStore = &monitor{}

func (m *monitors) start(ctx context.Context, resource schema.GroupVersionResource, gvk schema.GroupVersionKind) *monitor {
	ctx, cancel := context.WithCancel(ctx)
	started := &monitor{monitors: m, ctx: ctx, resource: resource, gvk: gvk, filled: make(chan struct{})}
	client := m.collector.client.Resource(resource)
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, m.collector.client)
	logger := klog.FromContext(ctx)
	reflector := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, started, cache.ReflectorOptions{
		Name: "garbagecollector/" + resource.GroupResource().String(), TypeDescription: resource.String(), Logger: &logger,
	})
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	started.stop = func() {
		cancel()
		running.Wait()
	}
	return started
}

func (m *monitor) node(obj any) (*node, error) {
	object, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("following %s: unexpected type %T", m.resource, obj)
	}
	return newNode(m.resource, m.gvk, object), nil
}

// Add implements cache.ReflectorStore.
func (m *monitor) Add(obj any) error { return m.Update(obj) }

// Update implements cache.ReflectorStore.
func (m *monitor) Update(obj any) error {
	n, err := m.node(obj)
	if err != nil {
		return err
	}
	m.monitors.collector.apply(m.ctx, m.monitors.collector.graph.observe(n))
	return nil
}

// Delete implements cache.ReflectorStore.
func (m *monitor) Delete(obj any) error {
	n, err := m.node(obj)
	if err != nil {
		return err
	}
	m.monitors.collector.apply(m.ctx, m.monitors.collector.graph.remove(n.uid))
	return nil
}

// Replace implements cache.ReflectorStore.
func (m *monitor) Replace(list []any, _ string) error {
	nodes := make([]*node, 0, len(list))
	for _, obj := range list {
		n, err := m.node(obj)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	m.monitors.collector.apply(m.ctx, m.monitors.collector.graph.replace(m.resource, nodes))
	m.once.Do(func() {
		close(m.filled)
		m.monitors.check()
	})
	return nil
}

// Resync implements cache.ReflectorStore.
func (m *monitor) Resync() error { return nil }
