// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/rest"
)

// followers starts clients that watch slices from now on. handler is called once for each, before it starts. The
// returned function ends them, and returns what went wrong.
func followers(ctx context.Context, config *rest.Config, contentType string, n int, handler func() func(event []byte)) (stop func() error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := errors.New("ended")
	var running sync.WaitGroup
	stop = func() error {
		cancel(ended)
		running.Wait()
		if err := context.Cause(ctx); !errors.Is(err, ended) {
			return err
		}
		return nil
	}
	for range n {
		c, err := newClient(config)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		revision, err := c.listRevision(ctx)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		fn := handler()
		running.Go(func() {
			defer c.CloseIdleConnections()
			if err := c.follow(ctx, revision, contentType, fn); err != nil {
				cancel(err)
			}
		})
	}
	return stop, nil
}
