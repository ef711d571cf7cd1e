// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
)

// stopTimeout bounds the end of the process after its context. The controllers stop first, then the lease is released: a
// lease that is released while a controller writes would let two work at a time. What takes longer is given up: the
// lease then runs out by itself.
const stopTimeout = 4 * time.Second

// manager runs the controllers, one at a time among the processes that share a lease, and tells how it is.
type manager struct {
	config   *options.Config
	clients  clients
	election *leaderelection.HealthzAdaptor
	syncing  *syncing
}

func newManager(_ context.Context, config *options.Config) (*manager, error) {
	c, err := newClients(config.Client)
	if err != nil {
		return nil, err
	}
	// As kube-controller-manager: a lease that has run out for so long, in a process that still works, is a reason to
	// restart it.
	const patience = 20 * time.Second
	return &manager{config: config, clients: c, election: leaderelection.NewLeaderHealthzAdaptor(patience), syncing: &syncing{}}, nil
}

// run returns when ctx ends, with nil, or when the work cannot go on.
func (m *manager) run(ctx context.Context) error {
	serveCtx, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	if err := m.serve(serveCtx); err != nil {
		return err
	}
	if !m.config.LeaderElection.LeaderElect {
		return m.work(ctx)
	}
	return m.lead(ctx)
}

// work runs the controllers until ctx ends, or one of them fails.
func (m *manager) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartStructuredLogging(3)
	broadcaster.StartRecordingToSink(eventSink(m.clients))

	p := newParts(m.clients, m.config, broadcaster)
	var runners []runner
	for _, name := range m.config.Controllers {
		run, err := builders[name](p)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		runners = append(runners, run)
	}
	m.syncing.watch(p)
	p.informers.StartWithContext(ctx)
	p.gridInformers.StartWithContext(ctx)
	klog.FromContext(ctx).Info("Working", "controllers", m.config.Controllers)

	ended := make(chan error, len(runners))
	for i, run := range runners {
		go func() {
			err := run(ctx, m.config.ConcurrentSyncs)
			if err == nil && ctx.Err() == nil {
				err = fmt.Errorf("controller %s ended by itself", m.config.Controllers[i])
			}
			ended <- err
		}()
	}
	var failed error
	for range runners {
		if err := <-ended; err != nil && failed == nil {
			failed = err
		}
		// One that fails takes the others with it.
		cancel()
	}
	p.informers.Shutdown()
	p.gridInformers.Shutdown()
	return failed
}

// serve answers questions about health until ctx ends.
func (m *manager) serve(ctx context.Context) error {
	serving := m.config.SecureServing
	if serving == nil {
		return nil
	}
	if _, _, err := serving.Serve(newHandler(m.config, m.election, m.syncing), 0, ctx.Done()); err != nil {
		return fmt.Errorf("serve health and metrics: %w", err)
	}
	return nil
}
