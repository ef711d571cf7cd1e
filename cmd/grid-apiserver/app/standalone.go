// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-apiserver/app/options"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

// viewKubeconfig is the file in the data directory with which an administrator of
// the embedded API server reaches the view.
const viewKubeconfig = "view.kubeconfig"

// runStandalone serves the view of a node of the API server that runs in this process.
func runStandalone(ctx context.Context, completed options.Completed) error {
	config, err := completed.StandaloneConfig()
	if err != nil {
		return err
	}
	upstream, err := config.Complete().New(ctx)
	if err != nil {
		return errors.Join(err, config.SecureServing.Listener.Close())
	}
	// It ends after the view, which needs it.
	upstreamCtx, stopUpstream := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	viewCtx, stopView := context.WithCancel(ctx)
	defer stopView()
	go func() {
		ended <- upstream.PrepareRun().Run(upstreamCtx)
		stopView()
	}()
	err = serveView(viewCtx, completed, upstream)
	stopUpstream()
	return errors.Join(err, <-ended)
}

func serveView(ctx context.Context, completed options.Completed, upstream *standalone.Server) error {
	err := upstream.WaitReady(ctx)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was told to stop before it was ready
	case err != nil:
		return err
	}
	config, err := completed.ConfigFor(upstream.ClientConfig())
	if err != nil {
		return err
	}
	view, err := config.Complete().New(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(completed.DataDir, viewKubeconfig)
	if err := view.WriteTokenKubeconfig(ctx, kubeconfig, standalone.AdminUser, upstream.ClientConfig().BearerToken); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving without an upstream", "node", completed.NodeName,
		"unfiltered", filepath.Join(completed.DataDir, standalone.AdminKubeconfig), "view", kubeconfig)
	return view.PrepareRun().Run(ctx)
}
