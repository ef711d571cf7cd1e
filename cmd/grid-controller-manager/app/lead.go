// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
)

// errLost ends the process: what the controllers know may be out of date, and another may be working already.
var errLost = errors.New("lost the lease")

// errSlow is why a lease is not released.
var errSlow = fmt.Errorf("the controllers did not stop within %s", stopTimeout)

// lead waits for the lease, works while it is held, and releases it at the end.
//
//	waiting --acquired--> working --ctx ends, or a controller fails--> stopped --> released
//	   |                     `-----lost-----> stopped, with an error
//	   `--ctx ends--> done
func (m *manager) lead(ctx context.Context) error {
	// The election must outlive the controllers, or the lease would be released while they still write.
	electionCtx, stopElection := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElection()
	acquired := make(chan struct{})
	elector, err := m.newElector(func(context.Context) { close(acquired) })
	if err != nil {
		return err
	}
	m.election.SetLeaderElection(elector)
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electionCtx)
	}()

	select {
	case <-ctx.Done():
		stopElection()
		within(over, time.After(stopTimeout))
		return nil
	case <-over:
		return errLost
	case <-acquired:
	}

	workCtx, stopWork := context.WithCancel(ctx)
	defer stopWork()
	stopped := make(chan struct{})
	var failed error
	go func() {
		defer close(stopped)
		failed = m.work(workCtx)
	}()
	select {
	case <-over:
		stopWork()
		within(stopped, time.After(stopTimeout))
		return errLost
	case <-stopped:
	case <-ctx.Done():
	}
	deadline := time.After(stopTimeout)
	if !within(stopped, deadline) {
		return errSlow
	}
	stopElection()
	if !within(over, deadline) {
		klog.FromContext(ctx).Info("The lease was not released in time, and runs out by itself")
	}
	return failed
}

// within waits for done, and returns whether it came before the deadline.
func within(done <-chan struct{}, deadline <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-deadline:
		return false
	}
}

func (m *manager) newElector(acquired func(context.Context)) (*leaderelection.LeaderElector, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host's name: %w", err)
	}
	election := &m.config.LeaderElection
	lock, err := resourcelock.NewFromKubeconfig(election.ResourceLock, election.ResourceNamespace, election.ResourceName,
		// Two processes may run on one host.
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		m.config.Client, election.RenewDeadline.Duration)
	if err != nil {
		return nil, fmt.Errorf("make the lease: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            options.Component,
		LeaseDuration:   election.LeaseDuration.Duration,
		RenewDeadline:   election.RenewDeadline.Duration,
		RetryPeriod:     election.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		WatchDog:        m.election,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: acquired, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, fmt.Errorf("--leader-elect-*: %w", err)
	}
	return elector, nil
}
