// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The layout of a page, from go.etcd.io/bbolt/internal/common. Integers are in
// the byte order of the machine.
const (
	headerSize  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // of a branch: pos, ksize uint32, pgid uint64; of a leaf: flags, pos, ksize, vsize uint32

	branchFlag   = 0x01
	leafFlag     = 0x02
	freelistFlag = 0x10

	// The pages before it are the two meta pages.
	firstPage = 2
	// maxDepth is the number of pages from the root of the file to a leaf,
	// through all buckets. A page has room for dozens of keys: this is far more
	// than any file needs.
	maxDepth = 64

	// maxSize is the size of the largest file that bbolt can map on a 32-bit
	// machine. Any part of it has a length that is an int there.
	maxSize = math.MaxInt32
)

var order = binary.NativeEndian

// check returns what is wrong with a database file of bbolt, if anything is.
//
// bbolt trusts offsets and lengths in a file that it has mapped. A wrong one
// yields a slice of memory that belongs to something else, and then the Go
// runtime ends the process, which nothing can recover from. So everything that
// bbolt would follow is read here first, with bounds, from ordinary memory. The
// demands are those of what bbolt writes, which is more narrow than what it
// reads. A page that is neither used nor free is accepted: it is lost space.
func check(file io.ReaderAt, size int64) error {
	if size > maxSize {
		return fmt.Errorf("%d bytes are more than %d", size, maxSize)
	}
	meta, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	c := &checker{file: file, pageSize: meta.pageSize, seen: make([]bool, meta.pages)}
	if err := c.freelist(meta.freelist); err != nil {
		return fmt.Errorf("freelist: %w", err)
	}
	return c.tree(meta.root, nil, nil, 0, true)
}

// checker goes through the pages of one file. It holds one page of each level
// of the tree at a time, however large the file is.
type checker struct {
	file     io.ReaderAt
	pageSize int64
	// seen has a page once it was found to be used or free: no page is both, or
	// used twice. This also ends cycles. Its length is the number of pages.
	seen    []bool
	buffers [maxDepth][]byte
}

// page is a page with those that it overflows into.
type page struct {
	flags, count uint16
	// bytes begins with the header.
	bytes []byte
}

func parsePage(b []byte) page {
	return page{flags: order.Uint16(b[8:]), count: order.Uint16(b[10:]), bytes: b}
}

// page reads a page. What it returns is valid until the next page of this depth.
func (c *checker) page(id uint64, depth int) (page, error) {
	if id < firstPage || id >= uint64(len(c.seen)) {
		return page{}, fmt.Errorf("page %d is none of the %d of the file", id, len(c.seen))
	}
	first, err := c.read(id, 1, depth)
	if err != nil {
		return page{}, err
	}
	if got := order.Uint64(first); got != id {
		return page{}, fmt.Errorf("page %d has the header of page %d", id, got)
	}
	overflow := uint64(order.Uint32(first[12:]))
	if overflow >= uint64(len(c.seen))-id {
		return page{}, fmt.Errorf("page %d goes on for %d pages, beyond the end", id, overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if err := c.see(i); err != nil {
			return page{}, err
		}
	}
	if overflow == 0 {
		return parsePage(first), nil
	}
	whole, err := c.read(id, overflow+1, depth)
	if err != nil {
		return page{}, err
	}
	return parsePage(whole), nil
}

// read reads pages that are all within the file.
func (c *checker) read(id, pages uint64, depth int) ([]byte, error) {
	size := int(pages * uint64(c.pageSize))
	if cap(c.buffers[depth]) < size {
		c.buffers[depth] = make([]byte, size)
	}
	b := c.buffers[depth][:size]
	if _, err := c.file.ReadAt(b, int64(id)*c.pageSize); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return b, nil
}

func (c *checker) see(id uint64) error {
	if c.seen[id] {
		return fmt.Errorf("page %d is in two places", id)
	}
	c.seen[id] = true
	return nil
}

// freelist goes through the list of free pages: ascending ids, after their
// number if that is too large for the header. bbolt can do without the list,
// but this program always keeps it.
func (c *checker) freelist(id uint64) error {
	p, err := c.page(id, 0)
	if err != nil {
		return err
	}
	if p.flags != freelistFlag {
		return fmt.Errorf("page %d has flags %#x", id, p.flags)
	}
	ids, count := p.bytes[headerSize:], uint64(p.count)
	if count == 0xffff {
		ids, count = ids[8:], order.Uint64(ids)
	}
	if count > uint64(len(ids))/8 {
		return fmt.Errorf("page %d has no room for %d ids", id, count)
	}
	last := uint64(firstPage - 1)
	for i := range count {
		free := order.Uint64(ids[8*i:])
		if free <= last || free >= uint64(len(c.seen)) {
			return fmt.Errorf("id %d is %d after %d, of %d pages", i, free, last, len(c.seen))
		}
		if err := c.see(free); err != nil {
			return err
		}
		last = free
	}
	return nil
}

// tree goes through the pages below and including id. Their first key is low,
// and all are below high, unless nil: bbolt takes it that the key in a branch
// is the first of the child, and adds the child once more if it is not. At the
// top of a file are buckets only.
func (c *checker) tree(id uint64, low, high []byte, depth int, top bool) error {
	if depth >= maxDepth {
		return fmt.Errorf("page %d is more than %d levels deep", id, maxDepth)
	}
	p, err := c.page(id, depth)
	if err != nil {
		return err
	}
	elements, _, err := p.elements(low, high)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if p.flags == branchFlag && len(elements) == 0 {
		return fmt.Errorf("page %d: a branch without elements", id)
	}
	for i, e := range elements {
		switch {
		case p.flags == branchFlag:
			next := high
			if i+1 < len(elements) {
				next = elements[i+1].key
			}
			err = c.tree(e.child, e.key, next, depth+1, top)
		case e.bucket:
			err = c.bucket(e, depth+1)
		case top:
			err = fmt.Errorf("page %d: key %q at the top is no bucket", id, e.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket goes through a bucket: its value is the id of its root page and a
// sequence number. A small one has no pages, which id 0 stands for: one leaf
// without buckets follows.
func (c *checker) bucket(e element, depth int) error {
	if len(e.value) < 16 {
		return fmt.Errorf("bucket %q has only %d bytes", e.key, len(e.value))
	}
	root, rest := order.Uint64(e.value), e.value[16:]
	if root != 0 {
		if len(rest) != 0 {
			return fmt.Errorf("bucket %q is inline and has root page %d", e.key, root)
		}
		return c.tree(root, nil, nil, depth, false)
	}
	if err := checkInline(rest); err != nil {
		return fmt.Errorf("inline bucket %q: %w", e.key, err)
	}
	return nil
}

func checkInline(b []byte) error {
	if len(b) < headerSize {
		return fmt.Errorf("only %d bytes for a page", len(b))
	}
	p := parsePage(b)
	// bbolt frees the page that the header names.
	if id, overflow := order.Uint64(b), order.Uint32(b[12:]); id != 0 || overflow != 0 || p.flags != leafFlag {
		return fmt.Errorf("page %d, flags %#x, overflow %d", id, p.flags, overflow)
	}
	elements, rest, err := p.elements(nil, nil)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes too many", len(rest))
	}
	for _, e := range elements {
		if e.bucket {
			return errors.New("a bucket within")
		}
	}
	return nil
}
