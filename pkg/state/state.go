// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state keeps what must outlive the process in the data directory:
// the floor of the view's revisions, the last labels seen on the own Node and
// which resources clients have asked for.
//
// It is a small bbolt database. One process at a time may have it open. A file
// that bbolt cannot read is set aside, not fatal: everything in it can be had
// again from upstream or from the wall clock.
package state

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"k8s.io/klog/v2"
)

const (
	fileName = "state.db"
	// lockTimeout is how long Open waits for another process to let go of the
	// file: longer than a terminating server needs to close it, short enough
	// for an operator who started two.
	lockTimeout = 3 * time.Second
)

var (
	bucketName       = []byte("v1")
	revisionFloorKey = []byte("revisionFloor")
	probeKey         = []byte("probe")
	requestedPrefix  = "requested/"
	nodeLabelsPrefix = "nodeLabels/"
)

// ErrInUse is returned by Open while another process has the data directory open.
var ErrInUse = errors.New("the data directory is in use by another process")

// State is the open database. It is safe for concurrent use. Every method that
// writes returns after the write is on disk; all of them are rare.
type State struct {
	db *bbolt.DB
}

// Open opens the database in dir, which must exist, and creates it when it is
// not there. A damaged file is renamed to state.db.damaged (replacing an older
// one, so that repeated damage does not fill the disk) and a new one is begun.
func Open(ctx context.Context, dir string) (*State, error) {
	path := filepath.Join(dir, fileName)
	db, err := open(path, nil)
	if err != nil {
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		aside := path + ".damaged"
		klog.FromContext(ctx).Error(err, "State file is damaged, starting with a new one", "path", path, "setAside", aside)
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("set the damaged state file aside: %w", err)
		}
		if db, err = open(path, nil); err != nil {
			return nil, err
		}
	}
	return &State{db: db}, nil
}

// errDamaged marks an error that means that the contents are unusable, as
// against a file that cannot be opened.
var errDamaged = errors.New("damaged")

// open opens and reads the whole (small) file once, so that damage is found
// here and not in a later read. bbolt reports some damage by panicking, and
// reading past the end of a file that was cut is a memory fault, since the
// file is mapped. bbolt's own Check would do both in another goroutine, where
// nobody can recover.
//
// A file on a file system that has become read-only, as flash does when it
// wears out, is opened to be read. openFile is os.OpenFile if nil.
func open(path string, openFile func(string, int, os.FileMode) (*os.File, error)) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("open state file %s: %w: %v", path, errDamaged, r)
		}
		if err != nil && db != nil {
			// The error that matters is the one already held.
			_ = db.Close()
			db = nil
		}
	}()
	options := &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType, OpenFile: openFile}
	db, err = bbolt.Open(path, 0o600, options)
	if errors.Is(err, syscall.EROFS) {
		options.ReadOnly = true
		db, err = bbolt.Open(path, 0o600, options)
	}
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open state file %s: %w", path, ErrInUse)
	}
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			return nil, fmt.Errorf("open state file: %w", err)
		}
		// Neither the file system nor the lock: the contents.
		return nil, fmt.Errorf("open state file %s: %w: %w", path, errDamaged, err)
	}
	if db.IsReadOnly() {
		return db, db.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketName) == nil {
				return fmt.Errorf("state file %s is empty and the file system is read-only", path)
			}
			return nil
		})
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("open state file: %w", err)
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("state file %s: %w: it has %d bytes of %d", path, errDamaged, info.Size(), tx.Size())
		}
		bucket, err := tx.CreateBucketIfNotExists(bucketName)
		if err != nil {
			return fmt.Errorf("state file %s: %w: %w", path, errDamaged, err)
		}
		return bucket.ForEach(func(_, _ []byte) error { return nil })
	})
	// Writing uses pages that reading does not: the free ones, those that the
	// first write frees, and the other meta page.
	for i := byte(0); i < 3 && err == nil; i++ {
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketName).Put(probeKey, []byte{i}) })
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		// What is there can be read; the writes to come will say that they fail.
		return db, nil
	case err != nil && !errors.Is(err, errDamaged):
		// The file could be opened and locked: it is the contents.
		return db, fmt.Errorf("state file %s: %w: %w", path, errDamaged, err)
	}
	return db, err
}

// Close closes the database.
func (s *State) Close() error {
	return s.db.Close()
}

// RevisionFloor returns the revision below which every view revision may have
// been handed out by an earlier process; 0 when there was none.
func (s *State) RevisionFloor() (uint64, error) {
	var floor uint64
	err := s.read(revisionFloorKey, func(value []byte) error {
		if len(value) != 8 {
			return fmt.Errorf("revision floor has %d bytes, not 8", len(value))
		}
		floor = binary.BigEndian.Uint64(value)
		return nil
	})
	return floor, err
}

// SetRevisionFloor records that revisions up to floor may be handed out.
func (s *State) SetRevisionFloor(floor uint64) error {
	return s.write(revisionFloorKey, binary.BigEndian.AppendUint64(nil, floor))
}

// NodeLabels returns the labels last seen on the Node called name; false when
// none were ever recorded.
func (s *State) NodeLabels(name string) (map[string]string, bool, error) {
	var labels map[string]string
	found := false
	err := s.read([]byte(nodeLabelsPrefix+name), func(value []byte) error {
		found = true
		return json.Unmarshal(value, &labels)
	})
	return labels, found && err == nil, err
}

// SetNodeLabels records the labels seen on the Node called name.
func (s *State) SetNodeLabels(name string, labels map[string]string) error {
	value, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode node labels: %w", err)
	}
	return s.write([]byte(nodeLabelsPrefix+name), value)
}

// Requested reports whether a client has ever asked for the resource
// ("endpoints").
func (s *State) Requested(resource string) (bool, error) {
	found := false
	err := s.read([]byte(requestedPrefix+resource), func([]byte) error { found = true; return nil })
	return found, err
}

// SetRequested records that a client has asked for the resource.
func (s *State) SetRequested(resource string) error {
	return s.write([]byte(requestedPrefix+resource), []byte{1})
}

func (s *State) read(key []byte, fn func(value []byte) error) (err error) {
	defer recovered(&err)()
	err = s.db.View(func(tx *bbolt.Tx) error {
		if value := tx.Bucket(bucketName).Get(key); value != nil {
			return fn(value)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %q from the state file: %w", key, err)
	}
	return nil
}

func (s *State) write(key, value []byte) (err error) {
	defer recovered(&err)()
	err = s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketName).Put(key, value) })
	if err != nil {
		return fmt.Errorf("write %q to the state file: %w", key, err)
	}
	return nil
}

// recovered returns what is to be deferred so that damage found by bbolt, which
// it reports by a panic or by a fault of the mapped memory, becomes an error:
// what is kept here is no reason to stop serving.
func recovered(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("state file: %w: %v", errDamaged, r)
		}
	}
}
