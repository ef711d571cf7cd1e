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
func Open(ctx context.Context, dir string) (*State, error) {
	path := filepath.Join(dir, fileName)
	db, err := open(ctx, path, bbolt.Options{})
	if err != nil {
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		aside := path + ".damaged"
		klog.FromContext(ctx).Error(err, "State file is damaged, starting with a new one", "path", path, "setAside", aside)
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("set the damaged state file aside: %w", err)
		}
		if db, err = open(ctx, path, bbolt.Options{}); err != nil {
			return nil, err
		}
	}
	return &State{db: db}, nil
}

// open opens a file that check finds nothing wrong with. One on a file system
// that has become read-only, as flash does when it wears out, is opened to be
// read.
func open(ctx context.Context, path string, options bbolt.Options) (*bbolt.DB, error) {
	options.Timeout = lockTimeout
	options.FreelistType = bbolt.FreelistMapType
	options.OpenFile = openChecked(ctx, options.OpenFile)
	var db *bbolt.DB
	err := guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &options)
		if errors.Is(err, syscall.EROFS) {
			options.ReadOnly = true
			db, err = bbolt.Open(path, 0o600, &options)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open state file %s: %w", path, err)
	}
	return db, nil
}

type openFile func(path string, flag int, mode os.FileMode) (*os.File, error)

// openChecked returns a function for bbolt to open its file with: the file is
// locked, and either empty, which bbolt takes for a new one, or checked. next
// is os.OpenFile if nil.
func openChecked(ctx context.Context, next openFile) openFile {
	if next == nil {
		next = os.OpenFile
	}
	return func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
		file, err := next(path, flag, mode)
		if err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				file.Close()
			}
		}()
		if err := lock(ctx, file, flag&os.O_RDWR != 0); err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil || info.Size() == 0 {
			return file, err
		}
		// That it cannot be read is damage as well.
		if err := check(file, info.Size()); err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		return file, nil
	}
}
