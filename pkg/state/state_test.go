// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustOpen(t *testing.T, dir string) *State {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func mustClose(t *testing.T, s *State) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func TestValuesSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if floor, err := s.RevisionFloor(); err != nil || floor != 0 {
		t.Errorf("RevisionFloor of a new file = %d, %v; want 0, nil", floor, err)
	}
	if _, found, err := s.NodeLabels("n1"); err != nil || found {
		t.Errorf("NodeLabels of a new file: found %v, %v", found, err)
	}
	labels := map[string]string{"zone1": "a", "empty": ""}
	for _, err := range []error{s.SetRevisionFloor(1 << 60), s.SetNodeLabels("n1", labels), s.SetRequested("endpoints")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)

	s = mustOpen(t, dir)
	defer mustClose(t, s)
	if floor, err := s.RevisionFloor(); err != nil || floor != 1<<60 {
		t.Errorf("RevisionFloor = %d, %v; want %d, nil", floor, err, uint64(1<<60))
	}
	got, found, err := s.NodeLabels("n1")
	if err != nil || !found {
		t.Errorf("NodeLabels: found %v, %v", found, err)
	}
	if diff := cmp.Diff(labels, got); diff != "" {
		t.Errorf("NodeLabels (-want +got):\n%s", diff)
	}
	if _, found, _ := s.NodeLabels("n2"); found {
		t.Errorf("labels of another node were found")
	}
	if requested, err := s.Requested("endpoints"); err != nil || !requested {
		t.Errorf("Requested(endpoints) = %v, %v; want true", requested, err)
	}
	if requested, err := s.Requested("nodes"); err != nil || requested {
		t.Errorf("Requested(nodes) = %v, %v; want false", requested, err)
	}
}

func TestSecondOpenIsRefusedWhileInUse(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	defer mustClose(t, s)
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		if _, err := Open(t.Context(), dir); !errors.Is(err, ErrInUse) {
			t.Errorf("second Open: %v; want ErrInUse", err)
		}
		if waited := time.Since(before); waited != lockTimeout {
			t.Errorf("it is refused after %v, not %v", waited, lockTimeout)
		}
	})
}

func TestOpenWaitsForAnotherToClose(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if err := s.SetRevisionFloor(7); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(lockTimeout/2, func() { mustClose(t, s) })
		s := mustOpen(t, dir)
		defer mustClose(t, s)
		if floor, err := s.RevisionFloor(); err != nil || floor != 7 {
			t.Errorf("RevisionFloor = %d, %v; want 7", floor, err)
		}
	})
}

func TestDamagedFileIsSetAside(t *testing.T) {
	whole := func(t *testing.T) []byte {
		dir := t.TempDir()
		s := mustOpen(t, dir)
		if err := s.SetRevisionFloor(7); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		content, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}(t)
	zeroed := make([]byte, len(whole))
	noise := make([]byte, len(whole))
	rand.New(rand.NewSource(1)).Read(noise)
	tests := map[string][]byte{
		"text":                 []byte("this is no database"),
		"zeroed":               zeroed,
		"noise":                noise,
		"cut in the meta page": whole[:100],
		"cut after one page":   whole[:os.Getpagesize()],
		"only the meta pages":  whole[:2*os.Getpagesize()],
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, dir)
			defer mustClose(t, s)
			if floor, err := s.RevisionFloor(); err != nil || floor != 0 {
				t.Errorf("RevisionFloor = %d, %v; want 0, nil", floor, err)
			}
			aside, err := os.ReadFile(path + ".damaged")
			if err != nil {
				t.Fatalf("the damaged file was not kept: %v", err)
			}
			if diff := cmp.Diff(content, aside); diff != "" {
				t.Error("the file set aside is not the one that was damaged")
			}
			if err := s.SetRevisionFloor(9); err != nil {
				t.Errorf("writing to the new file: %v", err)
			}
		})
	}
}

func TestFlippedBitsNeverStopAStartOrAWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	s := mustOpen(t, dir)
	for i := range uint64(20) {
		if err := s.SetRevisionFloor(i); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	// The headers of the pages, bit by bit, and bits anywhere.
	var flips [][]int
	for page := 0; page < len(whole); page += os.Getpagesize() {
		for bit := range 16 * 8 {
			flips = append(flips, []int{page*8 + bit})
		}
	}
	for range 100 {
		var bits []int
		for range 20 {
			bits = append(bits, random.Intn(len(whole)*8))
		}
		flips = append(flips, bits)
	}
	for _, bits := range flips {
		content := slices.Clone(whole)
		for _, bit := range bits {
			content[bit/8] ^= 1 << (bit % 8)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatalf("bits %v: %v", bits, err)
		}
		s.db.NoSync = true
		for i := range uint64(4) {
			if err := s.SetRevisionFloor(100 + i); err != nil {
				t.Errorf("bits %v: %v", bits, err)
			}
			if err := s.SetNodeLabels("n1", map[string]string{"zone1": "a"}); err != nil {
				t.Errorf("bits %v: %v", bits, err)
			}
		}
		if floor, err := s.RevisionFloor(); err != nil || floor != 103 {
			t.Errorf("bits %v: RevisionFloor = %d, %v; want 103", bits, floor, err)
		}
		mustClose(t, s)
	}
}

func TestFlippedBitInAValueIsAnErrorOfItsReader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	s := mustOpen(t, dir)
	for _, err := range []error{s.SetRevisionFloor(7), s.SetNodeLabels("n1", map[string]string{"zone1": "lost"}), s.SetRequested("endpoints")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Copies in pages that are free by now change with it.
	if err := os.WriteFile(path, bytes.ReplaceAll(content, []byte("lost"), []byte("lose")), 0o600); err != nil {
		t.Fatal(err)
	}

	s = mustOpen(t, dir)
	defer mustClose(t, s)
	if labels, found, err := s.NodeLabels("n1"); err == nil || found || !strings.Contains(err.Error(), "nodeLabels/n1") {
		t.Errorf("NodeLabels = %v, found %t, %v; want an error with the key", labels, found, err)
	}
	if floor, err := s.RevisionFloor(); err != nil || floor != 7 {
		t.Errorf("RevisionFloor = %d, %v; want 7", floor, err)
	}
	if err := s.SetNodeLabels("n1", nil); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.NodeLabels("n1"); err != nil || !found {
		t.Errorf("NodeLabels after a write: found %t, %v", found, err)
	}
}

func TestFileCutWhileOpenStopsNobody(t *testing.T) {
	// bbolt finds the meta pages gone before it has a transaction, the others during it.
	for name, size := range map[string]int{"all": 0, "all but the meta pages": 2 * os.Getpagesize()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir)
			if err := s.SetRevisionFloor(7); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(dir, fileName), int64(size)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RevisionFloor(); !errors.Is(err, errDamaged) {
				t.Errorf("RevisionFloor: %v; want an error of damage", err)
			}
			if err := s.SetRevisionFloor(8); !errors.Is(err, errDamaged) {
				t.Errorf("SetRevisionFloor: %v; want an error of damage", err)
			}
			if err := s.Close(); !errors.Is(err, errDamaged) {
				t.Errorf("Close: %v; want an error of damage", err)
			}
		})
	}
}

func TestDirectoryThatCannotBeUsedIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"missing": filepath.Join(t.TempDir(), "missing"), "a file": file} {
		t.Run(name, func(t *testing.T) {
			if s, err := Open(t.Context(), dir); err == nil {
				mustClose(t, s)
				t.Error("Open succeeded")
			}
		})
	}
}
