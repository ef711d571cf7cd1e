// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

func TestSealIsOfOneKeyAndValue(t *testing.T) {
	sealed := seal([]byte("key1"), []byte("value"))
	if value, err := unseal([]byte("key1"), sealed); err != nil || string(value) != "value" {
		t.Errorf("unseal = %q, %v", value, err)
	}
	for key, value := range map[string]string{"key2": "value", "key1": "valuE", "key": "1value", "key1v": "alue"} {
		forged := slices.Concat(sealed[:sealSize], []byte(value))
		if _, err := unseal([]byte(key), forged); err == nil {
			t.Errorf("key %q with value %q passes for another", key, value)
		}
	}
}

func TestValuesOfTheFormatWithoutSealsAreNotThere(t *testing.T) {
	dir := t.TempDir()
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("v1"))
		if err != nil {
			return err
		}
		return b.Put(revisionFloorKey, make([]byte, 8))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	defer mustClose(t, s)
	if floor, err := s.RevisionFloor(); err != nil || floor != 0 {
		t.Errorf("RevisionFloor = %d, %v; want 0, nil", floor, err)
	}
}
