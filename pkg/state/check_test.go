// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"k8s.io/klog/v2"
)

var rounds = flag.Int("rounds", 300, "number of random files and transactions for the check")

func checkImage(f image) error { return check(bytes.NewReader(f), int64(len(f))) }

func TestCheckAcceptsWhatBboltWrites(t *testing.T) {
	whole := sample(t)
	branches, large := 0, 0
	for id := uint64(firstPage); id < whole.pages(); id++ {
		if p := whole.page(id); order.Uint64(p) == id {
			if order.Uint16(p[8:]) == branchFlag {
				branches++
			}
			if order.Uint32(p[12:]) > 0 {
				large++
			}
		}
	}
	if free := order.Uint16(whole.page(whole.freelist())[10:]); branches < 3 || large < 3 || free == 0 {
		t.Fatalf("the sample has %d branches, %d pages that go on and %d free ones", branches, large, free)
	}
	tests := map[string]func(image){
		"whole":                func(image) {},
		"first meta page torn": func(f image) { f.page(0)[headerSize+20]++ },
		// Half of all writes leave the newer meta page here.
		"second meta page torn": func(f image) { f.page(1)[headerSize+20]++ },
		"noise in a free page": func(f image) {
			free := order.Uint64(f.page(f.freelist())[headerSize:])
			rand.New(rand.NewSource(1)).Read(f.page(free)[:samplePageSize])
		},
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			f := slices.Clone(whole)
			edit(f)
			if err := checkImage(f); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), fileName)
			if err := os.WriteFile(path, f, 0o600); err != nil {
				t.Fatal(err)
			}
			exercise(t, path)
		})
	}
}

func TestCheckAcceptsTheFileAfterEachTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: samplePageSize, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	pick := func(tx *bbolt.Tx) (*bbolt.Bucket, error) {
		b, err := tx.CreateBucketIfNotExists([]byte{byte(random.Intn(3))})
		for err == nil && random.Intn(2) == 0 {
			b, err = b.CreateBucketIfNotExists([]byte{'b', byte(random.Intn(3))})
		}
		return b, err
	}
	for i := range *rounds {
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := pick(tx)
			if err != nil {
				return err
			}
			// A run of keys, so that whole pages fill and empty.
			first, size := random.Intn(200), random.Intn(200)
			if random.Intn(20) == 0 {
				size = 5000
			}
			remove := random.Intn(2) == 0
			for k := range random.Intn(60) {
				key := fmt.Appendf(nil, "k%03d", first+k)
				if remove {
					err = b.Delete(key)
				} else {
					err = b.Put(key, make([]byte, size))
				}
				if err != nil {
					return err
				}
			}
			if name := []byte{'b', 0}; random.Intn(10) == 0 && b.Bucket(name) != nil {
				return b.DeleteBucket(name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if err := check(file, info.Size()); err != nil {
			t.Fatalf("transaction %d: %v", i, err)
		}
	}
}

func TestCheckNamesTheDamage(t *testing.T) {
	whole := sample(t)
	// Where things are in the sample, all of the newest transaction.
	root, freelist, pages := whole.root(), whole.freelist(), whole.pages()
	tree := whole.tree("tree")
	leaf := tree
	for order.Uint16(whole.page(leaf)[8:]) == branchFlag {
		leaf = whole.child(leaf, 0)
	}
	outer := whole.tree("outer")
	put16, put32, put64 := order.PutUint16, order.PutUint32, order.PutUint64
	// element returns the header of an element.
	element := func(f image, id uint64, i int) []byte { return f.page(id)[headerSize+i*elementSize:] }
	key := func(f image, id uint64, i int) []byte {
		b := element(f, id, i)
		pos, size := order.Uint32(b[4:]), order.Uint32(b[8:])
		return b[pos:][:size]
	}
	meta := func(offset int, value uint64) func(image) {
		return func(f image) { put64(f.meta()[offset:], value); f.seal() }
	}

	tests := map[string]struct {
		edit func(f image)
		want string
	}{
		"no meta page":              {func(f image) { f.page(0)[headerSize]++; f.page(1)[headerSize]++ }, "no valid meta page"},
		"other version":             {func(f image) { f.page(0)[headerSize+4]++; f.page(1)[headerSize+4]++; f.seal() }, "no valid meta page"},
		"page size no power of two": {func(f image) { put32(f.page(0)[headerSize+8:], 3000); f.seal() }, "page size 3000"},
		"page size zero":            {func(f image) { put32(f.page(0)[headerSize+8:], 0); f.seal() }, "page size 0"},
		"two page sizes":            {func(f image) { put32(f.page(1)[headerSize+8:], 2048); f.seal() }, "page size 2048"},
		"more pages than the file":  {meta(40, uint64(len(whole)/samplePageSize)+1), "in a file of"},
		"no pages":                  {meta(40, 0), ": 0 pages"},
		"transaction out of turn":   {func(f image) { f.meta()[48] ^= 1; f.seal() }, "transaction"},
		"last transaction":          {func(f image) { f.meta()[55] = 0xff; f.seal() }, "transaction"},
		"root beyond the end":       {meta(16, pages), "is none of"},
		"root at a meta page":       {meta(16, 1), "page 1 is none of"},
		"no freelist":               {meta(32, 1<<64-1), "freelist: page 18446744073709551615 is none of"},
		"freelist elsewhere":        {meta(32, root), "has flags 0x2"},
		"freelist too long":         {func(f image) { put16(f.page(freelist)[10:], 1000) }, "no room for 1000 ids"},
		"freelist far too long": {func(f image) {
			put16(f.page(freelist)[10:], 0xffff)
			put64(f.page(freelist)[headerSize:], 1<<61+1)
		}, "no room for 2305843009213693953 ids"},
		"meta page free":       {func(f image) { put64(f.page(freelist)[headerSize:], 1) }, "id 0 is 1"},
		"page beyond end free": {func(f image) { put64(f.page(freelist)[headerSize:], pages) }, "id 0 is"},
		"page free twice": {func(f image) {
			copy(f.page(freelist)[headerSize+8:headerSize+16], f.page(freelist)[headerSize:])
		}, "id 1 is"},
		"used page free": {func(f image) {
			put16(f.page(freelist)[10:], 1)
			put64(f.page(freelist)[headerSize:], leaf)
		}, "is in two places"},

		"header of another page":  {func(f image) { put64(f.page(leaf), leaf+1) }, "has the header of page"},
		"two types":               {func(f image) { put16(f.page(leaf)[8:], 3) }, "flags 0x3"},
		"freelist in the tree":    {func(f image) { put16(f.page(leaf)[8:], freelistFlag) }, "flags 0x10"},
		"overflow beyond the end": {func(f image) { put32(f.page(leaf)[12:], uint32(pages-leaf)) }, "beyond the end"},
		"overflow without end":    {func(f image) { put32(f.page(leaf)[12:], 1<<32-1) }, "beyond the end"},
		"overflow into another":   {func(f image) { put32(f.page(leaf)[12:], uint32(pages-leaf-1)) }, "is in two places"},
		"too many elements":       {func(f image) { put16(f.page(leaf)[10:], 0xffff) }, "no room for 65535 elements"},
		"one element less":        {func(f image) { put16(f.page(leaf)[10:], order.Uint16(f.page(leaf)[10:])-1) }, "instead of"},
		"no elements in a branch": {func(f image) { put16(f.page(tree)[10:], 0) }, "a branch without elements"},
		"flags of an element":     {func(f image) { put32(element(f, leaf, 0), 2) }, "element 0 has flags 0x2"},
		"key elsewhere":           {func(f image) { put32(element(f, leaf, 1)[4:], 1<<31) }, "the key of element 1 is at 2147483648"},
		"key of a branch":         {func(f image) { put32(element(f, tree, 1), 0) }, "the key of element 1 is at 0"},
		"key too long":            {func(f image) { put32(element(f, leaf, 0)[8:], 1<<32-1) }, "a key of 4294967295 bytes"},
		"key too long in a branch": {func(f image) {
			put32(element(f, tree, 0)[4:], samplePageSize)
		}, "a key of 1024 bytes"},
		"key empty": {func(f image) {
			b := element(f, leaf, 0)
			put32(b[12:], order.Uint32(b[12:])+order.Uint32(b[8:]))
			put32(b[8:], 0)
		}, "a key of 0 bytes"},
		"value too long":         {func(f image) { put32(element(f, leaf, 0)[12:], 1<<32-1) }, "a value of 4294967295"},
		"key twice":              {func(f image) { copy(key(f, leaf, 1), key(f, leaf, 0)) }, "the key of element 1 is not above"},
		"keys not in order":      {func(f image) { key(f, leaf, 1)[0] = 0 }, "the key of element 1 is not above"},
		"first key of a child":   {func(f image) { key(f, leaf, 0)[0] = 0 }, "the first key is not"},
		"no elements in a child": {func(f image) { put16(f.page(leaf)[10:], 0) }, "the first key is not"},
		"key of the next child":  {func(f image) { key(f, leaf, int(order.Uint16(f.page(leaf)[10:]))-1)[0] = 0xff }, "is not below the next"},
		"child beyond the end":   {func(f image) { put64(element(f, tree, 0)[8:], pages) }, "is none of"},
		"child twice":            {func(f image) { put64(element(f, tree, 1)[8:], f.child(tree, 0)) }, "is in two places"},
		"child of itself":        {func(f image) { put64(element(f, tree, 0)[8:], tree) }, "is in two places"},

		"value at the top":             {func(f image) { put32(element(f, root, 0), 0) }, "at the top is no bucket"},
		"bucket too short":             {func(f image) { put32(element(f, outer, 2), 1); put32(element(f, outer, 2)[12:], 15) }, "has only 15 bytes"},
		"bucket inline and not":        {func(f image) { put64(f.value("inline"), leaf) }, "is inline and has root page"},
		"root of a bucket elsewhere":   {func(f image) { put64(f.value("tree"), 1<<40) }, "page 1099511627776 is none of"},
		"root of a bucket in use":      {func(f image) { put64(f.value("tree"), root) }, "is in two places"},
		"inline bucket without page":   {func(f image) { put64(f.value("tree"), 0) }, "only 0 bytes for a page"},
		"inline bucket with a page id": {func(f image) { put64(f.value("inline")[16:], 3) }, "page 3, flags 0x2"},
		"inline branch":                {func(f image) { put16(f.value("inline")[24:], branchFlag) }, "page 0, flags 0x1"},
		"inline overflow":              {func(f image) { put32(f.value("inline")[28:], 1) }, "overflow 1"},
		"inline elements":              {func(f image) { put16(f.value("inline")[26:], 100) }, "no room for 100 elements"},
		"inline value too long":        {func(f image) { put32(f.value("inline")[44:], 11) }, "a value of 11, of 13"},
		"inline value too short":       {func(f image) { put32(f.value("inline")[44:], 9) }, "1 bytes too many"},
		"bucket in an inline bucket":   {func(f image) { put32(f.value("inline")[32:], 1) }, "a bucket within"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := slices.Clone(whole)
			test.edit(f)
			if err := checkImage(f); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %q", err, test.want)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		if err := check(bytes.NewReader(whole), maxSize+1); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("got %v; want an error of the size", err)
		}
	})
	t.Run("cut short", func(t *testing.T) {
		for size := 1; size < int(pages)*samplePageSize; size += samplePageSize / 2 {
			if checkImage(whole[:size]) == nil {
				t.Errorf("%d bytes of %d pages are accepted", size, pages)
			}
		}
	})
}

func TestCheckLimitsTheDepth(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := 0; i < maxDepth && err == nil; i++ {
			b, err = b.CreateBucket([]byte("b"))
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkImage(content); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("got %v; want an error of the depth", err)
	}
}

// badDisk cannot read from one offset on.
type badDisk struct {
	image
	bad int64
}

var errDisk = errors.New("input/output error")

func (d badDisk) ReadAt(b []byte, offset int64) (int, error) {
	if offset+int64(len(b)) > d.bad {
		return 0, errDisk
	}
	return copy(b, d.image[offset:]), nil
}

func TestCheckReportsThatTheDiskCannotRead(t *testing.T) {
	whole := sample(t)
	for bad := int64(0); bad < int64(whole.root()+1)*samplePageSize; bad += samplePageSize {
		if err := check(badDisk{whole, bad}, int64(len(whole))); !errors.Is(err, errDisk) {
			t.Errorf("bad from %d: %v", bad, err)
		}
	}
}

// edit changes four bits at most for each four bytes of edits: where, and what
// to flip there. An odd number of bytes has the sums of the meta pages set
// right afterwards.
func (f image) edit(edits []byte) {
	for e := range slices.Chunk(edits, 4) {
		if len(e) == 4 {
			f[(int(e[0])<<16|int(e[1])<<8|int(e[2]))%len(f)] ^= e[3]
		}
	}
	if len(edits)%2 == 1 {
		f.seal()
	}
	// Of the pages that bbolt follows, the headers of these two are read by its
	// own check alone, with which the tests compare.
	for id := range uint64(2) {
		order.PutUint64(f.page(id), id)
		order.PutUint16(f.page(id)[8:], metaFlag)
	}
}

// tryDamaged checks the file and does with it what must be possible then.
func tryDamaged(t *testing.T, path string, f image) (accepted bool) {
	t.Helper()
	if err := os.WriteFile(path, f, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without a log of each damaged file.
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	db, err := openDB(ctx, path, bbolt.Options{NoSync: true})
	if err != nil {
		if !errors.Is(err, errDamaged) {
			t.Errorf("open: %v; want an error of damage", err)
		}
		return false
	}
	s := &State{db: db}
	if err := s.SetRequested("endpoints"); err != nil {
		t.Error(err)
	}
	if requested, err := s.Requested("endpoints"); err != nil || !requested {
		t.Errorf("Requested = %t, %v", requested, err)
	}
	mustClose(t, s)
	if err := os.WriteFile(path, f, 0o600); err != nil {
		t.Fatal(err)
	}
	exercise(t, path)
	return true
}

func TestWhatPassesTheCheckIsSafeForBbolt(t *testing.T) {
	whole := sample(t)
	path := filepath.Join(t.TempDir(), fileName)
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	accepted := 0
	for range *rounds {
		edits := make([]byte, 4*(1+random.Intn(3))+random.Intn(2))
		random.Read(edits)
		f := slices.Clone(whole)
		f.edit(edits)
		if tryDamaged(t, path, f) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("edits %x", edits)
		}
	}
	if accepted == 0 || accepted == *rounds {
		t.Errorf("%d of %d files accepted: this tests nothing", accepted, *rounds)
	}
}

func FuzzOpenDamaged(f *testing.F) {
	whole := sample(f)
	f.Add([]byte{})
	for id := range whole.pages() {
		at := id * samplePageSize
		f.Add([]byte{byte(at >> 16), byte(at >> 8), byte(at) + 10, 1, 0})
	}
	path := filepath.Join(f.TempDir(), fileName)
	f.Fuzz(func(t *testing.T, edits []byte) {
		damaged := slices.Clone(whole)
		damaged.edit(edits)
		tryDamaged(t, path, damaged)
	})
}
