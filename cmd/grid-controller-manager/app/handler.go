// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers those of requests, work queues, leader election
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
)

// newHandler returns the handler of health and metrics.
func newHandler(config *options.Config, election healthz.HealthChecker, syncing *syncing) http.Handler {
	paths := mux.NewPathRecorderMux(options.Component)
	healthz.InstallHandler(paths, healthz.PingHealthz, election)
	healthz.InstallLivezHandler(paths, healthz.PingHealthz, election)
	// One that waits for the lease is ready: else a rolling update would wait for the one that works.
	healthz.InstallReadyzHandler(paths, healthz.PingHealthz, election, healthz.NamedCheck("informers", syncing.check))
	paths.Handle("/metrics", legacyregistry.Handler())

	var handler http.Handler = paths
	handler = genericapifilters.WithAuthorization(handler, config.Authorization.Authorizer, clientgoscheme.Codecs)
	handler = genericapifilters.WithAuthentication(handler, config.Authentication.Authenticator,
		genericapifilters.Unauthorized(clientgoscheme.Codecs), nil, nil)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")}
	handler = genericapifilters.WithRequestInfo(handler, resolver)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithHTTPLogging(handler)
	return genericfilters.WithPanicRecovery(handler, resolver)
}

// syncing knows which informers have not synced yet. The zero value knows none, as before the work begins.
type syncing struct {
	lock  sync.Mutex
	parts *parts
}

func (s *syncing) watch(p *parts) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.parts = p
}

// check names the kinds that are still to come: one that the cluster does not have never does.
func (s *syncing) check(r *http.Request) error {
	s.lock.Lock()
	p := s.parts
	s.lock.Unlock()
	if p == nil {
		return nil
	}
	// Asked with a context that has ended, they answer at once.
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	var missing []string
	for _, result := range []cache.SyncResult{p.informers.WaitForCacheSyncWithContext(ctx), p.gridInformers.WaitForCacheSyncWithContext(ctx)} {
		for kind, synced := range result.Synced {
			if !synced {
				missing = append(missing, kind.Elem().Name())
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("not listed yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

func eventSink(c clients) record.EventSink {
	return &typedcorev1.EventSinkImpl{Interface: c.core.CoreV1().Events("")}
}
