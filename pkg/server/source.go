// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/state"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// source is what is served: the stores, what writes to them, and the feed.
type source struct {
	stores map[schema.GroupResource]*memory.Store
	// filled are closed when the stores hold what is to be served.
	filled map[schema.GroupResource]<-chan struct{}
	view   *watchcache.View
	// mirrors hold what is served as upstream has it.
	mirrors map[schema.GroupResource]*watchcache.Mirror
	feed    *watchcache.Feed
}

type kind struct {
	newFunc, newListFunc func() runtime.Object
}

func kinds() map[schema.GroupResource]kind {
	return map[schema.GroupResource]kind{
		watchcache.Services:       {func() runtime.Object { return &corev1.Service{} }, func() runtime.Object { return &corev1.ServiceList{} }},
		watchcache.Endpoints:      {func() runtime.Object { return &corev1.Endpoints{} }, func() runtime.Object { return &corev1.EndpointsList{} }},
		watchcache.EndpointSlices: {func() runtime.Object { return &discoveryv1.EndpointSlice{} }, func() runtime.Object { return &discoveryv1.EndpointSliceList{} }},
		watchcache.Nodes:          {func() runtime.Object { return &corev1.Node{} }, func() runtime.Object { return &corev1.NodeList{} }},
		watchcache.Namespaces:     {func() runtime.Object { return &corev1.Namespace{} }, func() runtime.Object { return &corev1.NamespaceList{} }},
		watchcache.ServiceCIDRs:   {func() runtime.Object { return &networkingv1.ServiceCIDR{} }, func() runtime.Object { return &networkingv1.ServiceCIDRList{} }},
	}
}

// newSource makes the stores, empty, and what is to fill them. ctx ends the
// watches of node domains; the others end with the context of Run.
func newSource(ctx context.Context, c *completedConfig, kept *state.State) (_ *source, err error) {
	s := &source{
		stores: map[schema.GroupResource]*memory.Store{}, filled: map[schema.GroupResource]<-chan struct{}{},
		mirrors: map[schema.GroupResource]*watchcache.Mirror{},
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	revisions := watchcache.NewRevisions(ctx, kept, time.Now())
	mirrored := map[schema.GroupResource]bool{watchcache.Nodes: true, watchcache.Namespaces: true, watchcache.ServiceCIDRs: true}
	for gr, k := range kinds() {
		start := revisions.Start()
		if mirrored[gr] {
			// The first list gives them upstream's.
			start = 0
		}
		store, err := memory.New(memory.Config{
			GroupResource: gr, ResourcePrefix: "/" + gr.Resource,
			NewFunc: k.newFunc, NewListFunc: k.newListFunc, InitialRevision: start,
		})
		if err != nil {
			return nil, fmt.Errorf("make the store of %s: %w", gr, err)
		}
		s.stores[gr] = store
		if mirrored[gr] {
			s.mirrors[gr] = watchcache.NewMirror(ctx, gr.Resource, store)
			s.filled[gr] = s.mirrors[gr].Filled()
		}
	}

	typed := rest.CopyConfig(c.Upstream)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, fmt.Errorf("make the client of upstream: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(metadata.ConfigFor(c.Upstream))
	if err != nil {
		return nil, fmt.Errorf("make the metadata client of upstream: %w", err)
	}
	domains := watchcache.NewNodeDomains(ctx, metadataClient)
	s.view = watchcache.NewView(ctx, watchcache.ViewConfig{
		NodeName: c.NodeName, Revisions: revisions, Domains: domains, LocalEndpoint: c.LocalEndpoint,
		Services: s.stores[watchcache.Services], EndpointSlices: s.stores[watchcache.EndpointSlices], Endpoints: s.stores[watchcache.Endpoints],
	})
	s.filled[watchcache.Services], s.filled[watchcache.EndpointSlices] = s.view.Filled(), s.view.Filled()
	s.filled[watchcache.Endpoints] = s.view.FilledEndpoints()
	s.feed = watchcache.NewFeed(watchcache.FeedConfig{
		NodeName: c.NodeName, Client: client, Metadata: metadataClient, Memory: kept, View: s.view, Domains: domains,
		Nodes: s.mirrors[watchcache.Nodes], Namespaces: s.mirrors[watchcache.Namespaces], ServiceCIDRs: s.mirrors[watchcache.ServiceCIDRs],
	})
	return s, nil
}

// stop ends the watches of the stores.
func (s *source) stop() {
	for _, store := range s.stores {
		store.Stop()
	}
}
