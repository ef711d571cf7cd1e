// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/trace/noop"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/loopback"
)

// Server serves CustomResourceDefinitions. Its GenericAPIServer is a delegate of
// the front, which runs it.
type Server struct {
	*apiserver.CustomResourceDefinitions

	loopback *loopback.Transport
	// stop ends the informer of the definitions, begin has begun it.
	stop  context.CancelFunc
	begin sync.WaitGroup
}

// New returns a server that stores in b. The configuration is that of the front,
// before it is completed: it is copied, but for the AggregatedDiscoveryGroupManager,
// which both must share, and which is made if there is none. The loopback client
// must have a bearer token. What this server does not know goes to next. The
// caller must Stop it.
func New(front *genericapiserver.Config, b *backend.Backend, next genericapiserver.DelegationTarget) (*Server, error) {
	if front.LoopbackClientConfig == nil || front.LoopbackClientConfig.BearerToken == "" {
		return nil, errors.New("custom resources: no loopback client with a token is configured")
	}
	if front.AggregatedDiscoveryGroupManager == nil {
		front.AggregatedDiscoveryGroupManager = discoveryendpoint.NewResourceManager("apis")
	}
	s := &Server{loopback: loopback.NewTransport()}
	config := apiserver.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: s.genericConfig(front, b)},
		ExtraConfig: apiserver.ExtraConfig{
			CRDRESTOptionsGetter: b.CustomResources(),
			// With several servers a definition waits five seconds before it counts as established.
			MasterCount:         1,
			ServiceResolver:     webhook.NewDefaultServiceResolver(),
			AuthResolverWrapper: webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, front.LoopbackClientConfig, noop.NewTracerProvider()),
		},
	}
	var err error
	if s.CustomResourceDefinitions, err = config.Complete().New(next); err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	s.loopback.SetHandler(s.GenericAPIServer.Handler)
	definitions := s.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	if err := definitions.SetTransform(establishEarlier); err != nil {
		return nil, fmt.Errorf("custom resources: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.GenericAPIServer.AddPostStartHookOrDie("stop-apiextensions-informers", func(hook genericapiserver.PostStartHookContext) error {
		context.AfterFunc(hook, stop)
		return nil
	})
	s.begin.Go(func() { s.startInformers(ctx, b) })
	return s, nil
}

func (s *Server) genericConfig(front *genericapiserver.Config, b *backend.Backend) genericapiserver.Config {
	own := *front
	own.LoopbackClientConfig = s.loopback.ClientConfig(front.LoopbackClientConfig)
	own.RESTOptionsGetter = b.Getter(func(schema.GroupResource) (runtime.Codec, error) {
		return backend.NewCodec(apiserver.Codecs, runtime.ContentTypeProtobuf, apiextensionsv1.SchemeGroupVersion)
	})
	own.MergedResourceConfig = apiserver.DefaultAPIResourceConfigSource()
	// Server-side apply of definitions needs their models. The documents are the front's, see Publish.
	own.OpenAPIConfig, own.OpenAPIV3Config = nil, newOpenAPIV3Config()
	own.SkipOpenAPIInstallation = true
	// The front has them, and what a delegate has is added to what the front has.
	own.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	return own
}

// startInformers starts the informers before the hook that does: what waits for
// them when the server starts looks at once, and then a tenth of a second later.
func (s *Server) startInformers(ctx context.Context, b *backend.Backend) {
	if err := b.WaitReady(ctx); err == nil { // else the first LIST comes too early, and the next one a second later
		s.Informers.StartWithContext(ctx)
	}
}

// WaitSynced returns when the definitions have been read, or with false when ctx
// ends before. It must return before the front runs: a hook of the front ends the
// process if the front is stopped while it waits for that.
func (s *Server) WaitSynced(ctx context.Context) bool {
	return cache.WaitFor(ctx, "", s.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer().HasSyncedChecker())
}

// Stop ends what New has begun, and waits until what reads definitions has ended.
// If the front runs, it must have ended.
func (s *Server) Stop() {
	s.stop()
	s.begin.Wait()
	s.Informers.Shutdown()
	s.loopback.Close()
}
