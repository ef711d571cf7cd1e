// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Controller is what Start runs.
type Controller interface {
	Run(ctx context.Context, workers int) error
}

// Running is a controller that works against a Cluster, with informers of its
// own.
type Running struct {
	cluster *Cluster
	caches  map[string]cache.Store
	end     func() error
	stopped bool
}

// Start runs the controller that build makes.
func Start[C Controller](t testing.TB, cluster *Cluster, build func(kubernetes.Interface, informers.SharedInformerFactory) (C, error)) *Running {
	t.Helper()
	client := cluster.Client()
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := build(client, factory)
	if err != nil {
		t.Fatal(err)
	}
	r := &Running{cluster: cluster, caches: map[string]cache.Store{
		"services":       factory.Core().V1().Services().Informer().GetStore(),
		"pods":           factory.Core().V1().Pods().Informer().GetStore(),
		"nodes":          factory.Core().V1().Nodes().Informer().GetStore(),
		"endpoints":      factory.Core().V1().Endpoints().Informer().GetStore(),
		"endpointslices": factory.Discovery().V1().EndpointSlices().Informer().GetStore(),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed error
	factory.StartWithContext(ctx)
	wg.Go(func() { failed = controller.Run(ctx, 2) })
	r.end = func() error {
		cancel()
		wg.Wait()
		factory.Shutdown()
		if errors.Is(failed, context.Canceled) {
			return nil // stopped before its informers had synced
		}
		return failed
	}
	return r
}

// Stop ends the controller, if that has not been done. It is an error if the
// controller has failed, or has written into an object of a cache.
func (r *Running) Stop(t testing.TB) {
	t.Helper()
	if r.stopped {
		return
	}
	r.stopped = true
	if err := errors.Join(r.end(), r.unchanged()); err != nil {
		t.Error(err)
	}
}

// Caught fails unless the caches show what lists do.
func (r *Running) Caught() error {
	r.cluster.lock.Lock()
	defer r.cluster.lock.Unlock()
	for name, store := range r.caches {
		visible := r.cluster.resources[name].visible
		if len(store.List()) != len(visible) {
			return fmt.Errorf("%d %s are visible, %d are in the cache", len(visible), name, len(store.List()))
		}
		for _, cached := range store.List() {
			object := cached.(Object)
			if sent, ok := visible[keyOf(object)]; !ok || sent.GetResourceVersion() != object.GetResourceVersion() {
				return fmt.Errorf("the cache has an old revision of %s %s", name, keyOf(object))
			}
		}
	}
	return nil
}

// unchanged compares what is in the caches with what has been sent.
func (r *Running) unchanged() error {
	r.cluster.lock.Lock()
	defer r.cluster.lock.Unlock()
	for name, store := range r.caches {
		for _, cached := range store.List() {
			object := cached.(Object)
			sent, ok := r.cluster.resources[name].visible[keyOf(object)]
			if !ok || sent.GetResourceVersion() != object.GetResourceVersion() {
				continue
			}
			if diff := cmp.Diff(sent, object); diff != "" {
				return fmt.Errorf("the cached object %s %s has been written to (-sent +cached):\n%s", name, keyOf(object), diff)
			}
		}
	}
	return nil
}
