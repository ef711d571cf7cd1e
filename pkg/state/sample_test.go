// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

const (
	samplePageSize = 1 << 10
	metaFlag       = 0x04
)

// image is the content of a database file with pages of samplePageSize.
type image []byte

// page returns the content of the file from the page on.
func (f image) page(id uint64) []byte { return f[id*samplePageSize:] }

// meta returns what follows the header of the newer meta page.
func (f image) meta() []byte {
	first, second := f.page(0)[headerSize:], f.page(1)[headerSize:]
	if order.Uint64(second[48:]) > order.Uint64(first[48:]) {
		return second
	}
	return first
}

func (f image) root() uint64     { return order.Uint64(f.meta()[16:]) }
func (f image) freelist() uint64 { return order.Uint64(f.meta()[32:]) }
func (f image) pages() uint64    { return order.Uint64(f.meta()[40:]) }

// seal makes the sums of the meta pages right.
func (f image) seal() {
	for id := range uint64(2) {
		b := f.page(id)[headerSize:]
		order.PutUint64(b[56:], metaSum(b))
	}
}

// value returns the value of a bucket at the top.
func (f image) value(bucket string) []byte {
	elements, _, err := parsePage(f.page(f.root())[:samplePageSize]).elements(nil, nil)
	if err != nil {
		panic(err)
	}
	for _, e := range elements {
		if string(e.key) == bucket {
			return e.value
		}
	}
	panic("no bucket " + bucket)
}

// tree returns the root page of a bucket at the top.
func (f image) tree(bucket string) uint64 { return order.Uint64(f.value(bucket)) }

// child returns a child of a branch page.
func (f image) child(id uint64, i int) uint64 {
	return order.Uint64(f.page(id)[headerSize+i*elementSize+8:])
}

// sample returns a file that has everything that bbolt writes: inline buckets,
// nested ones, branches on several levels, pages that go on, and free pages.
func sample(t testing.TB) image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample")
	// The other type of freelist allocates at random.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: samplePageSize, NoSync: true, FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		t.Fatal(err)
	}
	update := func(fn func(*bbolt.Bucket) error, names ...string) {
		t.Helper()
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(names[0]))
			for _, name := range names[1:] {
				if err == nil {
					b, err = b.CreateBucketIfNotExists([]byte(name))
				}
			}
			if err != nil {
				return err
			}
			return fn(b)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(b *bbolt.Bucket, key string, size int) error {
		return b.Put([]byte(key), bytes.Repeat([]byte{byte(size)}, size))
	}
	random := rand.New(rand.NewSource(1))
	update(func(b *bbolt.Bucket) error {
		return b.Put(revisionFloorKey, seal(revisionFloorKey, make([]byte, 8)))
	}, string(bucketName))
	update(func(b *bbolt.Bucket) error { return put(b, "key", 10) }, "inline")
	update(func(*bbolt.Bucket) error { return nil }, "empty")
	update(func(b *bbolt.Bucket) error { return put(b, "key", 10) }, "outer", "inline")
	update(func(b *bbolt.Bucket) error { return put(b, "large", 3000) }, "outer", "inner")
	update(func(b *bbolt.Bucket) error { return put(b, "value", 500) }, "outer")
	for range 3 {
		update(func(b *bbolt.Bucket) error {
			for range 100 {
				if err := put(b, fmt.Sprintf("key-%04d", random.Intn(300)), random.Intn(100)); err != nil {
					return err
				}
			}
			return put(b, fmt.Sprintf("key-%04d", random.Intn(300)), 2500)
		}, "tree")
	}
	update(func(b *bbolt.Bucket) error {
		for i := range 12 {
			if err := put(b, fmt.Sprintf("%02d%s", i, strings.Repeat("k", 700)), 10); err != nil {
				return err
			}
		}
		return nil
	}, "wide")
	update(func(b *bbolt.Bucket) error {
		for i := 100; i < 200; i++ {
			if err := b.Delete(fmt.Appendf(nil, "key-%04d", i)); err != nil {
				return err
			}
		}
		return nil
	}, "tree")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// exercise has bbolt do with the file all that it can, without any of the
// defences of this package, and checks the file again.
func exercise(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatalf("bbolt does not open what passes the check: %v", err)
	}
	verify := func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			if !strings.Contains(err.Error(), "unreachable unfreed") {
				t.Errorf("bbolt finds wrong what passes the check: %v", err)
			}
		}
		return nil
	}
	if err := db.View(verify); err != nil {
		t.Error(err)
	}
	for round := range 4 {
		err := db.Update(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return churn(b, round) })
		})
		if err != nil {
			t.Errorf("bbolt does not write to what passes the check: %v", err)
		}
	}
	if err := db.View(verify); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(bytes.NewReader(content), int64(len(content))); err != nil {
		t.Errorf("the file does not pass after it was written to: %v", err)
	}
}

// churn reads a bucket, and replaces, removes and adds some of it.
func churn(b *bbolt.Bucket, round int) error {
	var keys, buckets [][]byte
	read := 0
	err := b.ForEach(func(key, value []byte) error {
		if value == nil {
			buckets = append(buckets, bytes.Clone(key))
			return nil
		}
		keys = append(keys, bytes.Clone(key))
		for _, c := range value {
			read += int(c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range buckets {
		if err := churn(b.Bucket(name), round); err != nil {
			return err
		}
	}
	for i, key := range keys {
		switch (i + round) % 4 {
		case 0:
			err = b.Put(key, make([]byte, (read+i)%2000))
		case 1:
			err = b.Delete(key)
		case 2:
			err = b.Put(append(key, byte(round)), key)
		}
		if err != nil {
			return err
		}
	}
	return b.Put([]byte{byte(round)}, nil)
}
