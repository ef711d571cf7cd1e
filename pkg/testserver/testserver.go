// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

// startTimeout is how long a start may take at most. It takes a tenth of a
// second; a machine that runs many tests at once is slower.
const startTimeout = time.Minute

// Options say what a test needs. The zero value is a server without a view.
type Options struct {
	// Node is the node whose view View reaches. It is created, unless the server
	// has one of that name. nil: there is no view yet, see Server.StartView.
	Node *corev1.Node
	// Manifests are files and folders of YAML or JSON, and Objects are objects, that
	// are in the server when it is ready. They are applied in this order: the files
	// of a folder by their names, the objects as they come, each with its status.
	// An object without a namespace goes to the default one; a namespace must come
	// before what is in it, and a CustomResourceDefinition before what it defines.
	// Objects of types that are not built in must say their apiVersion and kind.
	Manifests []string
	Objects   []runtime.Object
	// CustomResources serves CustomResourceDefinitions, and what they define. It
	// makes the start longer.
	CustomResources bool
	// WithoutControllers leaves Endpoints, EndpointSlices, ServiceGrids and
	// garbage to the test.
	WithoutControllers bool
	// ResyncPeriod has the controllers look at every object again that often. 0: never.
	ResyncPeriod time.Duration
	// DataDir is the directory for certificates. It must be empty or of a former
	// server. "": a temporary one that is removed at the end.
	DataDir string
	// Logger gets what the server logs. Start takes the log of the test; Run the
	// logger of its context.
	Logger *klog.Logger
}

// Server is a running API server. Its methods may be called concurrently.
type Server struct {
	// Upstream reaches the server itself, with all rights.
	Upstream *rest.Config
	// View reaches the view of Options.Node, with all rights: Services, Endpoints
	// and EndpointSlices as that node is to see them, and everything else as it
	// is. nil without Options.Node.
	View *rest.Config

	upstream *standalone.Server
	dataDir  string
	// removeDataDir tells that nobody else knows of it.
	removeDataDir bool

	// ctx ends the upstream, viewCtx the views before it.
	ctx, viewCtx        context.Context
	cancel, cancelViews context.CancelFunc
	running, views      sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*rest.Config
	err   error
}

// Start runs a server that ends with the test. It fails the test if the server
// does not start, or does not end well.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	ctx := context.Background() // the server outlives t.Context, which ends before the cleanup
	if options.Logger == nil {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0)))
		options.Logger = &logger
	}
	s, err := Run(ctx, options)
	if err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return s
}

// Run starts a server, and returns when it is ready. It ends when ctx does, or
// by Stop, which must be called in either case to wait for the end.
func Run(ctx context.Context, options Options) (_ *Server, err error) {
	if options.Logger != nil {
		ctx = klog.NewContext(ctx, *options.Logger)
	}
	s := &Server{dataDir: options.DataDir, nodes: map[string]*rest.Config{}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.viewCtx, s.cancelViews = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.dataDir == "" {
		if s.dataDir, err = os.MkdirTemp("", "grid-apiserver-"); err != nil {
			return nil, err
		}
		s.removeDataDir = true
	}
	starting, cancel := context.WithTimeout(s.viewCtx, startTimeout)
	defer cancel()
	if err := s.startUpstream(starting, options); err != nil {
		return nil, err
	}
	context.AfterFunc(s.viewCtx, s.end)
	if err := s.createObjects(starting, options); err != nil {
		return nil, err
	}
	if options.Node == nil {
		return s, nil
	}
	if s.View, err = s.StartView(starting, options.Node.Name); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) startUpstream(ctx context.Context, options Options) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	config := standalone.Config{
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener}, DataDir: s.dataDir,
		CustomResources: options.CustomResources, WithoutControllers: options.WithoutControllers, ResyncPeriod: options.ResyncPeriod,
	}
	if s.upstream, err = config.Complete().New(s.ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.running.Go(func() {
		if err := s.upstream.PrepareRun().Run(s.ctx); err != nil {
			s.fail(err)
		}
	})
	s.Upstream = clientConfig(s.upstream.ClientConfig())
	return s.upstream.WaitReady(ctx)
}

// clientConfig lifts the limits that protect a real API server from its clients:
// tests wait for them and do not know for what.
func clientConfig(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}

func listen() (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:0")
}

// Stop ends the server and waits for it. It may be called more than once, and
// reports what went wrong while the server ran.
func (s *Server) Stop() error {
	s.cancelViews()
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removeDataDir {
		s.removeDataDir = false
		if err := os.RemoveAll(s.dataDir); err != nil {
			s.err = errors.Join(s.err, err)
		}
	}
	return s.err
}

// end waits for the views, and ends the upstream that they need.
func (s *Server) end() {
	// A view that is being started is counted, or finds that the server has ended.
	s.mu.Lock()
	s.mu.Unlock() //nolint:staticcheck // the empty section is a barrier
	s.views.Wait()
	s.cancel()
	s.running.Wait()
}

func (s *Server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}
