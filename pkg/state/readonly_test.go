// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"
)

// openReadOnly opens the database as on a read-only file system.
func openReadOnly(t *testing.T, dir string) (*State, error) {
	t.Helper()
	return open(t.Context(), filepath.Join(dir, fileName), bbolt.Options{OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
		if flag&os.O_RDWR != 0 {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EROFS}
		}
		return os.OpenFile(path, flag, mode)
	}})
}

func TestReadOnlyFileSystemIsReadFrom(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if err := s.SetNodeLabels("n1", map[string]string{"zone1": "a"}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s, err := openReadOnly(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	if labels, found, err := s.NodeLabels("n1"); err != nil || !found || labels["zone1"] != "a" {
		t.Errorf("labels %v, found %t, %v", labels, found, err)
	}
	if err := s.SetRevisionFloor(1); err == nil {
		t.Error("writing succeeds")
	}
}

func TestNothingIsKeptOnAReadOnlyFileSystemWithoutAUsableFile(t *testing.T) {
	for name, content := range map[string][]byte{"missing": nil, "empty": {}, "damaged": make([]byte, 1<<15)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if content != nil {
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := openReadOnly(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if floor, err := s.RevisionFloor(); err == nil || floor != 0 {
				t.Errorf("RevisionFloor = %d, %v; want an error", floor, err)
			}
			if _, found, err := s.NodeLabels("n1"); err == nil || found {
				t.Errorf("NodeLabels: found %t, %v; want an error", found, err)
			}
			if requested, err := s.Requested("endpoints"); err == nil || requested {
				t.Errorf("Requested = %t, %v; want an error", requested, err)
			}
			for _, err := range []error{s.SetRevisionFloor(1), s.SetNodeLabels("n1", nil), s.SetRequested("endpoints")} {
				if err == nil {
					t.Error("writing succeeds")
				}
			}
			mustClose(t, s)
			if _, err := os.Stat(path); (err == nil) != (content != nil) {
				t.Errorf("the file was made or moved: %v", err)
			}
		})
	}
}

func TestReadOnlyFileInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	defer mustClose(t, s)
	synctest.Test(t, func(t *testing.T) {
		if _, err := openReadOnly(t, dir); !errors.Is(err, ErrInUse) {
			t.Errorf("Open: %v; want ErrInUse", err)
		}
	})
}
