// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

const (
	readyPoll = 2 * time.Millisecond
	// stopGrace is short: who stops the server of a test is done with it.
	stopGrace = 50 * time.Millisecond
)

var errEnded = errors.New("the server has ended")

// StartView starts the view of a node, and returns how to reach it, with all
// rights, when it is ready. A view is ready when its Node exists, so it waits for
// one that does not, until ctx ends. The view itself lasts as long as the server.
// A second call for a node returns the same view.
func (s *Server) StartView(ctx context.Context, nodeName string) (*rest.Config, error) {
	// The end of the server is also that of the wait.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.viewCtx, func() { cancel(fmt.Errorf("%w: %w", errEnded, context.Cause(s.viewCtx))) })()
	config, err := s.view(nodeName)
	if err != nil {
		return nil, fmt.Errorf("starting the view of node %s: %w", nodeName, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	last := errors.New("it was not asked yet")
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").Do(ctx).Raw()
		if err != nil && ctx.Err() == nil {
			last = fmt.Errorf("%w: %s", err, body)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the view of node %s is not ready: %w", nodeName, errors.Join(context.Cause(ctx), last))
	}
	return rest.CopyConfig(config), nil
}

// view starts a view that is not there yet.
func (s *Server) view(nodeName string) (*rest.Config, error) {
	// The name becomes that of a directory.
	if problems := validation.IsDNS1123Subdomain(nodeName); len(problems) > 0 {
		return nil, fmt.Errorf("no node can have the name %q: %s", nodeName, strings.Join(problems, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if config, ok := s.nodes[nodeName]; ok {
		return config, nil
	}
	if s.viewCtx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", errEnded, context.Cause(s.viewCtx))
	}
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	config := server.Config{
		NodeName: nodeName, Upstream: s.upstream.ClientConfig(), DataDir: filepath.Join(s.dataDir, "view-"+nodeName),
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener}, StopGrace: stopGrace,
	}
	view, err := config.Complete().New(s.viewCtx)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(s.viewCtx)
	s.views.Go(func() {
		defer cancel()
		if err := view.PrepareRun().Run(ctx); err != nil {
			s.fail(fmt.Errorf("the view of node %s: %w", nodeName, err))
		}
	})
	token := s.Upstream.BearerToken
	if err := view.WriteTokenKubeconfig(ctx, filepath.Join(s.dataDir, "view-"+nodeName+".kubeconfig"), standalone.AdminUser, token); err != nil {
		cancel()
		return nil, err
	}
	client := clientConfig(view.ClientConfig())
	client.BearerToken = token
	s.nodes[nodeName] = client
	return client, nil
}
