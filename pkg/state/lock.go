// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// lockTimeout is how long Open waits for another process to let go of the
	// file: longer than a terminating server needs to close it, short enough
	// for an operator who started two.
	lockTimeout = 3 * time.Second
	lockRetry   = 50 * time.Millisecond
)

// lock takes the lock that bbolt is about to ask for, of the same kind and on
// the same open file, so that bbolt finds that it has it: between a check of
// the file and its use no other process gets to write. Closing the file
// releases it.
func lock(ctx context.Context, file *os.File, exclusive bool) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	err := wait.PollUntilContextTimeout(ctx, lockRetry, lockTimeout, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, os.NewSyscallError("flock", err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return ErrInUse
	}
	return err
}
