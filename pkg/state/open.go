// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"
	"k8s.io/klog/v2"
)

const fileName = "state.db"

// ErrInUse is returned by Open while another process has the data directory open.
var ErrInUse = errors.New("the data directory is in use by another process")

// errDamaged marks an error that means that the contents are unusable, as
// against a file that cannot be opened.
var errDamaged = errors.New("damaged")

// Open opens the database in dir, which must exist, and creates it when it is
// not there. A damaged file is renamed to state.db.damaged (replacing an older
// one, so that repeated damage does not fill the disk) and a new one is begun.
//
// On a file system that has become read-only, as flash does when it wears out,
// the file is only read from. If that cannot be done either, nothing is kept:
// every use of the State is an error, except Close.
func Open(ctx context.Context, dir string) (*State, error) {
	return open(ctx, filepath.Join(dir, fileName), bbolt.Options{})
}

func open(ctx context.Context, path string, options bbolt.Options) (*State, error) {
	db, err := openDB(ctx, path, options)
	if errors.Is(err, errDamaged) {
		// It was set aside.
		db, err = openDB(ctx, path, options)
	}
	if errors.Is(err, syscall.EROFS) {
		options.ReadOnly = true
		db, err = openDB(ctx, path, options)
		if err != nil && !errors.Is(err, ErrInUse) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot read the state file of a read-only file system, nothing is kept", "path", path)
			return &State{unusable: errors.New("the file system is read-only and has no usable state file")}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &State{db: db}, nil
}

// openDB opens a file that check finds nothing wrong with. A damaged one that
// was to be written to is set aside.
func openDB(ctx context.Context, path string, options bbolt.Options) (*bbolt.DB, error) {
	next := options.OpenFile
	if next == nil {
		next = os.OpenFile
	}
	var file *os.File
	// bbolt also calls this in Tx.WriteTo and Copy, which would wait in vain for
	// the lock of their own database.
	options.OpenFile = func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
		if file, err = openLocked(ctx, next, path, flag, mode); err != nil {
			return nil, err
		}
		if err := checkFile(file, flag&os.O_RDWR != 0); err != nil {
			return nil, err
		}
		return file, nil
	}
	options.Timeout = lockTimeout
	options.FreelistType = bbolt.FreelistMapType
	var db *bbolt.DB
	err := guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &options)
		return err
	})
	if err == nil {
		return db, nil
	}
	err = fmt.Errorf("open state file %s: %w", path, err)
	if file == nil {
		return nil, err
	}
	// Only now: without the lock, the path may be another process's new file.
	// bbolt has closed the file already unless it is damaged.
	defer file.Close()
	if errors.Is(err, errDamaged) && !options.ReadOnly {
		aside := path + ".damaged"
		klog.FromContext(ctx).Error(err, "State file is damaged, starting with a new one", "path", path, "setAside", aside)
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("set the damaged state file aside: %w", err)
		}
	}
	return nil, err
}

// checkFile checks the contents, if any: an empty file that can be written to
// is a new one to bbolt.
func checkFile(file *os.File, writable bool) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 && writable {
		return err
	}
	// That it cannot be read is damage as well.
	if err := check(file, info.Size()); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}
