// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/internal/connections"
	generatedopenapi "github.com/grid-apiserver/grid-apiserver/pkg/generated/openapi"
	"github.com/grid-apiserver/grid-apiserver/pkg/identity"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/crd"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/loopback"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/openapi"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/reviews"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

const (
	// directory is where the server keeps its own things in the data directory,
	// apart from those of the view.
	directory = "standalone"
	// AdminKubeconfig is the file in the data directory with which everything
	// may be done on the unfiltered server.
	AdminKubeconfig = "admin.kubeconfig"

	// When the server stops, watches are ended at once and get drainTimeout to say
	// so, requests get graceTimeout before their connections are closed, and all of
	// it may take closeTimeout at most.
	drainTimeout = 100 * time.Millisecond
	graceTimeout = 150 * time.Millisecond
	closeTimeout = 3 * time.Second
	// definitionsTimeout is far more than a read of nothing takes.
	definitionsTimeout = 30 * time.Second
)

// Server is a standalone API server.
type Server struct {
	address  net.Addr
	listener *connections.Listener
	lock     io.Closer
	identity *identity.Identity
	token    string
	backend  *backend.Backend
	generic  *genericapiserver.GenericAPIServer
	// loopback is how the server's own controllers reach it, through transport.
	loopback  *rest.Config
	transport *loopback.Transport
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	custom    *crd.Server // nil without custom resources
	// controllers are told to end before the server does.
	controllers *controllers
}

// PreparedServer is a Server that may be run.
type PreparedServer struct {
	*Server
	prepared interface {
		RunWithContext(ctx context.Context) error
	}
}

// New makes a server and writes its kubeconfig; nothing is served yet. Values of
// ctx, such as the logger, are kept.
func (c CompletedConfig) New(ctx context.Context) (_ *Server, err error) {
	if c.err != nil {
		return nil, c.err
	}
	s := &Server{address: c.SecureServing.Listener.Addr(), listener: connections.NewListener(c.SecureServing.Listener), transport: loopback.NewTransport()}
	c.SecureServing.Listener = s.listener
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.takeDirectory(ctx, c.DataDir); err != nil {
		return nil, fmt.Errorf("data directory %q: %w", c.DataDir, err)
	}
	if err := setUpProcess(); err != nil {
		return nil, err
	}
	types, err := scheme.New()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(types, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
	s.backend = backend.New(backend.Options{Codec: storageCodecs(codecs), Uncached: []schema.GroupResource{corev1.Resource("events")}})

	own := *s.identity.ClientConfig()
	own.BearerToken = newToken()
	own.QPS = -1
	own.UserAgent = "grid-apiserver/" + version.Get().GitVersion // also the field manager of the controllers
	own.ContentType = runtime.ContentTypeProtobuf
	own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	own.WarningHandlerWithContext = rest.NoWarnings{}
	s.loopback = s.transport.ClientConfig(&own)
	if s.client, err = kubernetes.NewForConfig(s.loopback); err != nil {
		return nil, err
	}
	s.informers = informers.NewSharedInformerFactory(s.client, c.ResyncPeriod)

	tokens := newTokenAuthenticator(map[string]string{s.token: AdminUser})
	config, err := s.genericConfig(c.completedConfig, codecs, tokens)
	if err != nil {
		return nil, err
	}
	storage, err := registry.New(s.backend, registry.Config{
		Service:  service.Config{ClusterIPRanges: c.ServiceClusterIPRanges, NodePortRange: c.ServiceNodePortRange},
		EventTTL: c.EventTTL,
	})
	if err != nil {
		return nil, err
	}
	reviewed, err := reviews.NewStorage(tokens, access{})
	if err != nil {
		return nil, err
	}
	for version, resources := range reviewed {
		storage[version] = resources
	}
	if s.controllers, err = newControllers(ctx, s.loopback, s.client, s.informers, c.completedConfig); err != nil {
		return nil, err
	}
	delegate := genericapiserver.NewEmptyDelegate()
	if c.CustomResources {
		if s.custom, err = crd.New(config, s.backend, delegate); err != nil {
			return nil, err
		}
		delegate = s.custom.GenericAPIServer
	}
	completed := config.Complete(s.informers)
	if s.generic, err = completed.New("standalone", delegate); err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	s.generic.ShutdownTimeout = closeTimeout
	s.transport.SetHandler(s.generic.Handler)
	models := openapi.New("Kubernetes", KubernetesVersion, types, generatedopenapi.GetOpenAPIDefinitions)
	i := installer{server: s.generic, config: completed.Config, scheme: types, serializer: codecs, types: models.TypeConverter()}
	if err := i.install(storage); err != nil {
		return nil, err
	}
	documents, err := models.Serve(s.generic.Handler.GoRestfulContainer, s.generic.Handler.NonGoRestfulMux)
	if err != nil {
		return nil, err
	}
	if err := s.publishCustomResources(documents); err != nil {
		return nil, err
	}
	if err := s.addHooks(c.completedConfig); err != nil {
		return nil, err
	}
	return s, nil
}

// setUpProcess makes the settings that k8s.io/apiserver keeps per process.
var setUpProcess = sync.OnceValue(func() error {
	// It compares each watch cache with the store below it by a full LIST every
	// few minutes.
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(features.DetectCacheInconsistency) + "=false"); err != nil {
		return fmt.Errorf("switch %s off: %w", features.DetectCacheInconsistency, err)
	}
	return nil
})

// takeDirectory locks what the server keeps on disk, and reads it.
func (s *Server) takeDirectory(ctx context.Context, dataDir string) error {
	dir := filepath.Join(dataDir, directory)
	if err := identity.MakeDirectory(dir); err != nil {
		return err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	s.lock = lock
	if s.token, err = keptToken(dir); err != nil {
		return err
	}
	var bind net.IP
	port := 0
	if address, ok := s.address.(*net.TCPAddr); ok {
		bind, port = address.IP, address.Port
	}
	if s.identity, err = identity.Ensure(ctx, identity.Options{Dir: dir, BindAddress: bind, Port: port}); err != nil {
		return err
	}
	return s.identity.WriteTokenKubeconfig(ctx, filepath.Join(dataDir, AdminKubeconfig), AdminUser, s.token, s.identity.ClientConfig().Host)
}

// ClientConfig is how an administrator reaches the server.
func (s *Server) ClientConfig() *rest.Config {
	config := s.identity.ClientConfig()
	config.BearerToken = s.token
	return config
}

// PrepareRun does what must follow the installation of the APIs.
func (s *Server) PrepareRun() PreparedServer {
	return PreparedServer{Server: s, prepared: s.generic.PrepareRun()}
}

// Run serves until ctx ends. It may be called once.
func (s PreparedServer) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Serving everything from memory", "address", s.address.String())
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { s.identity.Run(renewing) })
	stopClosing := context.AfterFunc(ctx, func() {
		time.AfterFunc(graceTimeout, s.listener.CloseConnections)
	})
	err := s.readDefinitions(ctx)
	if err == nil {
		// Also when ctx has ended: what New made of the libraries ends only this way.
		err = s.prepared.RunWithContext(ctx)
	} else {
		s.generic.Destroy()
		_ = s.listener.Close()
	}
	stopClosing()
	stop()
	wg.Wait()
	s.close()
	return err
}

// readDefinitions returns when the definitions of custom resources have been
// read, which takes milliseconds. A hook of k8s.io/apiextensions-apiserver ends
// the process if the server is stopped while it waits for that.
func (s *Server) readDefinitions(ctx context.Context) error {
	if s.custom == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), definitionsTimeout)
	defer cancel()
	if !s.custom.WaitSynced(ctx) {
		return fmt.Errorf("the definitions of custom resources could not be read within %s", definitionsTimeout)
	}
	return nil
}

// Close lets go of what New took, if the server is not to be run.
func (s *Server) Close() { s.close() }

func (s *Server) close() {
	if s.custom != nil {
		s.custom.Stop()
	}
	if s.controllers != nil {
		s.controllers.end()
	}
	s.transport.Close()
	if s.backend != nil {
		s.backend.Stop()
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

func (s *Server) readinessChecks() []healthz.HealthChecker {
	return []healthz.HealthChecker{healthz.NamedCheck("watchcaches", func(*http.Request) error { return s.backend.ReadinessCheck() })}
}
