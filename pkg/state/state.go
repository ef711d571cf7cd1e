// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state keeps what must outlive the process in the data directory:
// the floor of the view's revisions, the last labels seen on the own Node and
// which resources clients have asked for.
//
// It is a small bbolt database. One process at a time may have it open. A
// damaged file is set aside, not fatal: everything in it can be had again from
// upstream or from the wall clock. A damaged value is an error of its reader.
package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"
)

var (
	// bucketName has the version of the format of the values.
	bucketName       = []byte("v2")
	revisionFloorKey = []byte("revisionFloor")
	requestedPrefix  = "requested/"
	nodeLabelsPrefix = "nodeLabels/"
)

// State is the open database. It is safe for concurrent use. Every method that
// writes returns after the write is on disk; all of them are rare.
type State struct {
	db *bbolt.DB

	mu sync.Mutex
	// unusable is why db cannot be used: the damage that a use of it found, see
	// do, or that there is none.
	unusable error
}

// Close closes the database. One that was found damaged since Open stays as it
// is until the process ends.
func (s *State) Close() error {
	if s.db == nil {
		return nil
	}
	return s.do(s.db.Close)
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

func (s *State) read(key []byte, fn func(value []byte) error) error {
	err := s.do(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(bucketName)
			if bucket == nil {
				return nil
			}
			sealed := bucket.Get(key)
			if sealed == nil {
				return nil
			}
			value, err := unseal(key, sealed)
			if err != nil {
				return err
			}
			return fn(value)
		})
	})
	if err != nil {
		return fmt.Errorf("read %q from the state file: %w", key, err)
	}
	return nil
}

func (s *State) write(key, value []byte) error {
	err := s.do(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists(bucketName)
			if err != nil {
				return err
			}
			return bucket.Put(key, seal(key, value))
		})
	})
	if err != nil {
		return fmt.Errorf("write %q to the state file: %w", key, err)
	}
	return nil
}

// do runs one use of the database. After damage there is no other: bbolt may
// still hold its locks, and the next use would wait for them for ever.
func (s *State) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unusable != nil {
		return s.unusable
	}
	err := guard(fn)
	if errors.Is(err, errDamaged) {
		s.unusable = err
	}
	return err
}

// guard makes an error of damage done since the file was checked: what is kept
// here is no reason to stop serving. The file is mapped, so a part that was cut
// or that the disk can no longer read is a memory fault. What bbolt finds wrong
// it reports by a panic.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	return fn()
}
