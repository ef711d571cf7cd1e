// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// readyPoll is short beside a start, which takes a tenth of a second.
const readyPoll = 2 * time.Millisecond

// readySoon is when whoever waits is told so.
const readySoon = 5 * time.Second

// WaitReady returns when a server that runs is ready, or with an error that says
// what it waits for when ctx ends.
func (s *Server) WaitReady(ctx context.Context) error {
	last := errors.New("it was not asked yet")
	defer time.AfterFunc(readySoon, func() {
		klog.FromContext(ctx).Info("Still waiting for the standalone server; /readyz?verbose tells for what")
	}).Stop()
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		// The names of the failing checks are in the body.
		body, err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").Do(ctx).Raw()
		if err != nil && ctx.Err() == nil {
			last = fmt.Errorf("%w: %s", err, body)
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the standalone server is not ready: %w", errors.Join(context.Cause(ctx), last))
	}
	return nil
}
