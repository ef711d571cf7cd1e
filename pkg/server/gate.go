// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

const (
	// notReadyRetrySeconds is told to clients that come too early.
	notReadyRetrySeconds = 1
	// firstEndpointsTimeout bounds how long the first requests for Endpoints
	// wait for them to be read from upstream. Whoever is told to come again
	// after that does.
	firstEndpointsTimeout = 10 * time.Second
	gateInterval          = 20 * time.Millisecond
)

// gate keeps requests from resources that are not there yet: an empty list would
// make kube-proxy remove all its rules. What was there once stays open, for the
// watch caches are kept over failures of upstream.
type gate struct {
	feed   *watchcache.Feed
	caches *install.Readiness
	// filled are closed when the stores hold what is to be served.
	filled map[schema.GroupResource]<-chan struct{}
	open   map[schema.GroupResource]*atomic.Bool
}

func newGate(feed *watchcache.Feed, caches *install.Readiness, filled map[schema.GroupResource]<-chan struct{}) *gate {
	g := &gate{feed: feed, caches: caches, filled: filled, open: map[schema.GroupResource]*atomic.Bool{}}
	for gr := range filled {
		g.open[gr] = &atomic.Bool{}
	}
	return g
}

// check returns nil if the resource can be served: its store is filled, and the
// watch cache above it, which begins then, is initialised.
func (g *gate) check(gr schema.GroupResource) error {
	open, ok := g.open[gr]
	if !ok || open.Load() {
		return nil
	}
	if !g.isFilled(gr) {
		return g.waiting(gr)
	}
	if err := g.caches.Resource(gr); err != nil {
		return fmt.Errorf("the watch cache of %s is not initialised: %w", gr.Resource, err)
	}
	open.Store(true)
	return nil
}

func (g *gate) isFilled(gr schema.GroupResource) bool {
	select {
	case <-g.filled[gr]:
		return true
	default:
		return false
	}
}

// waiting tells what a resource waits for.
func (g *gate) waiting(gr schema.GroupResource) error {
	if err := g.feed.Waiting(gr); err != nil {
		return err
	}
	for _, other := range []schema.GroupResource{watchcache.Nodes, watchcache.Services, watchcache.EndpointSlices} {
		if err := g.feed.Waiting(other); err != nil {
			return err
		}
	}
	if err := g.feed.WaitingForKubernetes(); err != nil {
		return err
	}
	if err := g.feed.WaitingForDomains(); err != nil {
		return err
	}
	return fmt.Errorf("%s are being prepared", gr.Resource)
}

// wrap stands in front of the REST storages.
func (g *gate) wrap(next http.Handler, negotiated runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest {
			next.ServeHTTP(w, r)
			return
		}
		if err := g.pass(r.Context(), schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}); err != nil {
			responsewriters.RespondWithError(w, r, notReady(err), negotiated)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pass returns nil if the resource can be served, after a wait for Endpoints that
// nobody has asked for before.
func (g *gate) pass(ctx context.Context, gr schema.GroupResource) error {
	err := g.check(gr)
	if err != nil && gr == watchcache.Endpoints {
		err = g.firstEndpoints(ctx)
	}
	return err
}

// notReady is the Status for an error of pass.
func notReady(err error) error {
	unavailable := apierrors.NewServiceUnavailable("this server cannot show its view yet: " + err.Error())
	unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: notReadyRetrySeconds}
	return unavailable
}

// firstEndpoints has Endpoints read from upstream and waits for them, unless the
// server waits for more than them.
func (g *gate) firstEndpoints(ctx context.Context) error {
	if !g.isFilled(watchcache.Services) {
		return g.waiting(watchcache.Services)
	}
	g.feed.RequestEndpoints()
	var last error
	err := wait.PollUntilContextTimeout(ctx, gateInterval, firstEndpointsTimeout, true, func(context.Context) (bool, error) {
		last = g.check(watchcache.Endpoints)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
