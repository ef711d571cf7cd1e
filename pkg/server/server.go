// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	openapicommon "k8s.io/kube-openapi/pkg/common"

	"github.com/grid-apiserver/grid-apiserver/internal/connections"
	"github.com/grid-apiserver/grid-apiserver/pkg/auth"
	"github.com/grid-apiserver/grid-apiserver/pkg/identity"
	"github.com/grid-apiserver/grid-apiserver/pkg/proxy"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/state"
)

const (
	// The whole is to end within 5 s. drainTimeout is how long open watches get
	// to end when the server stops. closeTimeout is how long connections get,
	// from the same moment: an idle HTTP/2 connection is closed a second after
	// it was told so. stopTimeout is how long all of it takes at most.
	drainTimeout = 1500 * time.Millisecond
	closeTimeout = 3 * time.Second
	stopTimeout  = 4 * time.Second
	// backgroundTimeout is how long the watches of upstream get to end, which
	// takes no more than a context switch.
	backgroundTimeout = 500 * time.Millisecond
)

// Server is one grid-apiserver.
type Server struct {
	generic  *genericapiserver.GenericAPIServer
	identity *identity.Identity
	kept     *state.State
	source   *source
	proxy    interface{ CloseIdleConnections() }
	port     int
	cancel   context.CancelFunc
	// stopping ends when Run's context does, for what the handlers would
	// otherwise wait for.
	stopping context.Context
	stop     context.CancelFunc
	// closed ends with close.
	closed context.Context
	// connections is nil if they may take their time, else they have stopGrace.
	connections *connections.Listener
	stopGrace   time.Duration
}

// PreparedServer is a Server that can be run.
type PreparedServer struct {
	*Server
	prepared interface{ RunWithContext(context.Context) error }
}

// New makes the server. It reads and writes the data directory, but says nothing
// to upstream yet. Values of ctx, such as the logger, are kept.
func (c CompletedConfig) New(ctx context.Context) (_ *Server, err error) {
	if c.err != nil {
		return nil, c.err
	}
	if err := setUpProcess(); err != nil {
		return nil, err
	}
	// The server ends by itself, in Run, and not in the middle of a shutdown.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{closed: ctx, cancel: cancel, port: portOf(c.SecureServing.Listener)}
	s.stopping, s.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			s.close(ctx)
		}
	}()
	if err := identity.MakeDirectory(c.DataDir); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	// This is also the lock of the directory: a second process must not touch
	// the certificates and the kubeconfig of the first.
	if s.kept, err = state.Open(ctx, c.DataDir); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	if s.identity, err = identity.Ensure(ctx, identity.Options{
		Dir: c.DataDir, NodeName: c.NodeName, BindAddress: bindAddress(c.SecureServing.Listener), Port: s.port,
	}); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	if s.source, err = newSource(ctx, c.completedConfig, s.kept); err != nil {
		return nil, err
	}
	if err := s.buildGeneric(c.completedConfig); err != nil {
		return nil, err
	}
	return s, nil
}

// buildGeneric puts a genericapiserver over the stores.
func (s *Server) buildGeneric(c *completedConfig) error {
	apis, err := scheme.NewScheme()
	if err != nil {
		return fmt.Errorf("make the scheme: %w", err)
	}
	codecs := scheme.NewCodecs(apis)
	getter := backing.NewOptionsGetter(scheme.NewStorageCodec(codecs), s.source.stores, s.source.filled)
	infos, caches, err := install.NewAPIGroupInfos(apis, codecs, runtime.NewParameterCodec(apis), getter)
	if err != nil {
		return fmt.Errorf("make the REST storages: %w", err)
	}
	g := newGate(s.source.feed, caches, s.source.filled)
	handlers, err := s.newChain(c, g, codecs)
	if err != nil {
		caches.Destroy()
		return err
	}

	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	if c.StopGrace > 0 {
		s.stopGrace, s.connections = c.StopGrace, connections.NewListener(c.SecureServing.Listener)
		c.SecureServing.Listener = s.connections
	}
	config.SecureServing = c.SecureServing
	s.useCertificates(config.SecureServing)
	// The server never calls itself, and what it does not serve itself is
	// upstream's: discovery, OpenAPI, the index.
	config.LoopbackClientConfig = &rest.Config{}
	config.ExternalAddress = c.SecureServing.Listener.Addr().String()
	config.EnableIndex, config.EnableDiscovery, config.EnableProfiling = false, false, false
	config.SkipOpenAPIInstallation = true
	// Installing an API needs the configuration, though nothing is built from it.
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
		func(openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition { return nil },
		openapi.NewDefinitionNamer(apis))
	config.OpenAPIV3Config.IgnorePrefixes = install.IgnorePrefixes()
	config.RESTOptionsGetter = getter
	config.BuildHandlerChainFunc = handlers.build
	config.ShutdownWatchTerminationGracePeriod = drainTimeout
	config.ReadyzChecks = append(config.ReadyzChecks, g.readinessChecks(c.NodeName)...)
	s.generic, err = config.Complete(nil).New("grid-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		caches.Destroy()
		return fmt.Errorf("make the API server: %w", err)
	}
	s.generic.ShutdownTimeout = closeTimeout
	if err := install.Install(s.generic, infos); err != nil {
		s.generic.Destroy()
		return err
	}
	return nil
}

// newChain makes the handlers around the storages.
func (s *Server) newChain(c *completedConfig, g *gate, codecs runtime.NegotiatedSerializer) (*chain, error) {
	localIdentity, err := auth.NewLocalIdentityAuthenticator(s.identity.ClientCA().VerifyOptions)
	if err != nil {
		return nil, err
	}
	tokens, access, err := auth.NewReviewers(c.Upstream)
	if err != nil {
		return nil, err
	}
	authenticator, err := auth.NewAuthenticator(auth.AuthenticatorOptions{TokenReviews: tokens, LocalIdentity: localIdentity})
	if err != nil {
		return nil, err
	}
	authorizer, err := auth.NewAuthorizer(access, proxy.LocalIdentityMay)
	if err != nil {
		return nil, err
	}
	upstream, err := proxy.NewHandler(proxy.HandlerConfig{
		Upstream: c.Upstream, LocalIdentity: localIdentity, ServedResources: s.source.feed, NodeName: c.NodeName,
		View:   &writes{gate: g, view: s.source.view, mirrors: s.source.mirrors},
		Permit: newPermit(authenticator, authorizer, codecs),
		// Requests that are soon over get the time that connections get to close.
		Stopping: s.stopping, Stopped: s.closed,
	})
	if err != nil {
		return nil, err
	}
	if closer, ok := upstream.(interface{ CloseIdleConnections() }); ok {
		s.proxy = closer
	}
	return &chain{
		nodeName: c.NodeName, gate: g, served: s.source.feed,
		authenticator: authenticator, authorizer: authorizer, upstream: upstream,
	}, nil
}

// useCertificates has the server ask for client certificates of the local
// identity, and show its own certificate where the operator gave none. Beside
// the operator's, its own one is shown to clients that ask for it by name.
func (s *Server) useCertificates(serving *genericapiserver.SecureServingInfo) {
	if serving.Cert == nil {
		serving.Cert = s.identity.Serving()
	} else {
		serving.SNICerts = append(serving.SNICerts, s.identity.Serving())
	}
	clientCA := s.identity.ClientCA()
	if serving.ClientCA != nil {
		clientCA = dynamiccertificates.NewUnionCAContentProvider(serving.ClientCA, clientCA)
	}
	serving.ClientCA = clientCA
}

// Port returns the port that the server listens on.
func (s *Server) Port() int { return s.port }

// ClientConfig is how a client on this node reaches the server. It has no credential.
func (s *Server) ClientConfig() *rest.Config { return s.identity.ClientConfig() }

// WriteTokenKubeconfig writes to path a kubeconfig with which a user that upstream
// knows by a bearer token reaches the view.
func (s *Server) WriteTokenKubeconfig(ctx context.Context, path, user, token string) error {
	return s.identity.WriteTokenKubeconfig(ctx, path, user, token, s.identity.ClientConfig().Host)
}

// PrepareRun does what must follow the installation of the APIs.
func (s *Server) PrepareRun() PreparedServer {
	return PreparedServer{Server: s, prepared: s.generic.PrepareRun()}
}

// Run serves until ctx ends, and returns within 5 s of it. It may be called once.
func (s PreparedServer) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	// What the handlers need outlives the handlers.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { s.identity.Run(background) })
	wg.Go(func() { s.source.feed.Run(background) })
	logger.Info("Serving", "address", s.generic.ExternalAddress, "kubeconfig", s.identity.KubeconfigPath())

	served := make(chan error, 1)
	go func() { served <- s.prepared.RunWithContext(ctx) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		logger.Info("Stopping")
		s.stop()
		if s.connections != nil {
			defer time.AfterFunc(s.stopGrace, s.connections.CloseConnections).Stop()
		}
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case err = <-served:
		case <-timer.C:
			err = errors.New("requests were still open after the time to stop, they are cut off")
		}
	}
	stop()
	s.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wg.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(backgroundTimeout):
		logger.Info("The connections to upstream have not ended in time")
	}
	s.close(ctx)
	return err
}

// close lets go of what New took.
func (s *Server) close(ctx context.Context) {
	s.cancel()
	if s.proxy != nil {
		s.proxy.CloseIdleConnections()
	}
	if s.source != nil {
		s.source.stop()
	}
	if s.kept != nil {
		if err := s.kept.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot close the state file")
		}
	}
}

// bindAddress returns the IP address that a listener is bound to.
func bindAddress(l net.Listener) net.IP {
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		return addr.IP
	}
	return nil
}
