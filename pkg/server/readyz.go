// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// readinessChecks are the checks of /readyz: one for each thing that the server
// waits for when it starts. None of them fails later because upstream is away:
// then the node is served from what is there.
func (g *gate) readinessChecks(nodeName string) []healthz.HealthChecker {
	upstream := func(name string, gr schema.GroupResource) healthz.HealthChecker {
		return healthz.NamedCheck(name, func(*http.Request) error { return g.feed.Waiting(gr) })
	}
	checks := []healthz.HealthChecker{
		// The reasons of failing checks are logged, not answered. This name
		// tells an operator what is missing all the same.
		upstream("own-node-"+nodeName, watchcache.Nodes),
		upstream("upstream-services", watchcache.Services),
		upstream("upstream-endpointslices", watchcache.EndpointSlices),
		healthz.NamedCheck("upstream-endpoints", func(*http.Request) error {
			if !g.feed.EndpointsExpected() {
				return nil
			}
			return g.feed.Waiting(watchcache.Endpoints)
		}),
		upstream("upstream-namespaces", watchcache.Namespaces),
		upstream("upstream-servicecidrs", watchcache.ServiceCIDRs),
		healthz.NamedCheck("upstream-endpoints-kubernetes", func(*http.Request) error { return g.feed.WaitingForKubernetes() }),
		healthz.NamedCheck("topology-domains", func(*http.Request) error { return g.feed.WaitingForDomains() }),
	}
	for gr := range g.filled {
		checks = append(checks, healthz.NamedCheck("watchcache-"+gr.Resource, func(*http.Request) error { return g.cacheCheck(gr) }))
	}
	return checks
}

// cacheCheck fails while the watch cache of a resource that is to be served is
// not initialised: it would answer LISTs from the store below it and look healthy.
func (g *gate) cacheCheck(gr schema.GroupResource) error {
	if !g.feed.Serves(gr) || gr == watchcache.Endpoints && !g.feed.EndpointsExpected() {
		return nil
	}
	if err := g.check(gr); err != nil {
		return err
	}
	return g.caches.Resource(gr)
}
