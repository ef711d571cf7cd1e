// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// damagedDir returns a data directory with a damaged file in it.
func damagedDir(t *testing.T) (dir string, content []byte) {
	t.Helper()
	dir, content = t.TempDir(), make([]byte, 1<<15)
	if err := os.WriteFile(filepath.Join(dir, fileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, content
}

func TestFileSetAsideIsNotTakenForTheNewOne(t *testing.T) {
	dir, _ := damagedDir(t)
	path := filepath.Join(dir, fileName)
	synctest.Test(t, func(t *testing.T) {
		var owner *State
		_, err := open(t.Context(), path, bbolt.Options{OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			file, err := os.OpenFile(path, flag, mode)
			if owner == nil {
				// Another is faster, but leaves this with the damaged file.
				owner = mustOpen(t, dir)
				if err := owner.SetRevisionFloor(7); err != nil {
					t.Error(err)
				}
			}
			return file, err
		}})
		if !errors.Is(err, ErrInUse) {
			t.Errorf("the slower one: %v; want ErrInUse", err)
		}
		mustClose(t, owner)
	})
	s := mustOpen(t, dir)
	defer mustClose(t, s)
	if floor, err := s.RevisionFloor(); err != nil || floor != 7 {
		t.Errorf("RevisionFloor = %d, %v; want 7", floor, err)
	}
}

func TestFileSetAsideIsBegunAnew(t *testing.T) {
	dir, _ := damagedDir(t)
	path := filepath.Join(dir, fileName)
	opened := 0
	s, err := open(t.Context(), path, bbolt.Options{OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
		file, err := os.OpenFile(path, flag, mode)
		if opened++; opened == 1 {
			// Another sets it aside and ends.
			if err := os.Rename(path, path+".damaged"); err != nil {
				t.Error(err)
			}
		}
		return file, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("there is no new file: %v", err)
	}
}

// onLog is called for each line of a log.
type onLog func()

func (onLog) Helper()      {}
func (f onLog) Log(...any) { f() }

func TestDamagedFileIsLockedUntilItIsSetAside(t *testing.T) {
	dir, _ := damagedDir(t)
	synctest.Test(t, func(t *testing.T) {
		reported := 0
		logger := ktesting.NewLogger(onLog(func() {
			reported++
			if s, err := Open(t.Context(), dir); !errors.Is(err, ErrInUse) {
				t.Errorf("another Open before the file is set aside: %v, %v; want ErrInUse", s, err)
			}
		}), ktesting.NewConfig())
		s, err := Open(klog.NewContext(t.Context(), logger), dir)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if reported != 1 {
			t.Errorf("the damage is reported %d times", reported)
		}
	})
}

func TestDamagedFileLeavesOneOwner(t *testing.T) {
	for range 20 {
		dir, content := damagedDir(t)
		synctest.Test(t, func(t *testing.T) {
			ctx := klog.NewContext(t.Context(), klog.Logger{})
			owners := make(chan *State, 4)
			var wg sync.WaitGroup
			for range cap(owners) {
				wg.Go(func() {
					s, err := Open(ctx, dir)
					if err == nil {
						owners <- s
					} else if !errors.Is(err, ErrInUse) {
						t.Errorf("Open: %v; want ErrInUse", err)
					}
				})
			}
			wg.Wait()
			if len(owners) != 1 {
				t.Errorf("%d of %d own the data directory", len(owners), cap(owners))
			}
			for range len(owners) {
				mustClose(t, <-owners)
			}
		})
		if aside, err := os.ReadFile(filepath.Join(dir, fileName+".damaged")); err != nil || !bytes.Equal(aside, content) {
			t.Errorf("the file set aside is not the damaged one: %v", err)
		}
		if t.Failed() {
			return
		}
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	defer mustClose(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v; want that it was canceled", err)
	}
}
