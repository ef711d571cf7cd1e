// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"io/fs"
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

type openFile func(path string, flag int, mode os.FileMode) (*os.File, error)

// openLocked opens the file and takes the lock that bbolt is about to ask for,
// of the same kind and on the same open file, so that bbolt finds that it has
// it: between a check of the file and its use no other process gets to write.
// Closing the file releases it.
//
// The file that is locked is the one at path, until the lock is released: only
// who has the lock renames it.
func openLocked(ctx context.Context, next openFile, path string, flag int, mode os.FileMode) (*os.File, error) {
	var file *os.File
	err := wait.PollUntilContextTimeout(ctx, lockRetry, lockTimeout, true, func(context.Context) (bool, error) {
		f, err := next(path, flag, mode)
		if err != nil {
			return false, err
		}
		locked, err := tryLock(f, flag&os.O_RDWR != 0)
		if locked {
			// Its last owner may have set it aside.
			locked, err = isAt(f, path)
		}
		if !locked {
			f.Close()
			return false, err
		}
		file = f
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, ErrInUse
	}
	return file, err
}

func tryLock(file *os.File, exclusive bool) (bool, error) {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}

func isAt(file *os.File, path string) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(info, now), err
}
