// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is short against every bound that is measured with it (two seconds and more).
const pollInterval = 50 * time.Millisecond

// WaitFor calls check until it returns nil. After the timeout, or when ctx ends, it returns an error with the
// last answer of check. A check that began in time is allowed to end.
func WaitFor(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v: %w", what, timeout, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// waitForProcess is WaitFor that gives up when the program ends.
func waitForProcess(ctx context.Context, p *Process, timeout time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.Done():
			cancel(p.failure())
		case <-ctx.Done():
		}
	}()
	return WaitFor(ctx, timeout, what, check)
}
