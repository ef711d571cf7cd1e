// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
)

const (
	magic   = 0xED0CDAED
	version = 2

	// What is in a meta page after the header: magic, version, page size and
	// flags (uint32); the root bucket's page and sequence, the page of the
	// freelist, the number of pages, the transaction and the sum of all that
	// (uint64).
	metaSize = 64

	// Where bbolt looks for the second meta page if the first is not valid.
	minPageSize = 1 << 10
	maxPageSize = 16 << 20
	// A new file has the meta pages, a freelist and an empty root.
	minPages = 4
)

type meta struct {
	pageSize                    int64
	root, freelist, pages, txid uint64
}

// newestMeta returns what is in the meta page that bbolt goes by: of the first
// two pages the valid one of the later transaction. One of them is not valid
// if the power was cut while it was written. The pages of the earlier
// transaction are of no interest: they may have been written over already, and
// bbolt never returns to them, since the next write replaces that meta page.
func newestMeta(file io.ReaderAt, size int64) (*meta, error) {
	if size < minPages*minPageSize {
		return nil, fmt.Errorf("only %d bytes", size)
	}
	first, err := readMeta(file, size, 0)
	if err != nil {
		return nil, err
	}
	if first != nil {
		second, err := readMeta(file, size, first.pageSize)
		if err != nil {
			return nil, err
		}
		if second != nil && second.txid > first.txid {
			return second, nil
		}
		return first, nil
	}
	for offset := int64(minPageSize); offset <= maxPageSize && offset < size-minPageSize; offset *= 2 {
		if second, err := readMeta(file, size, offset); second != nil || err != nil {
			return second, err
		}
	}
	return nil, errors.New("no valid meta page")
}

// readMeta returns nil if no valid meta page begins at offset. One that has the
// right sum but cannot be of this file is an error.
func readMeta(file io.ReaderAt, size, offset int64) (*meta, error) {
	b := make([]byte, metaSize)
	if _, err := file.ReadAt(b, offset+headerSize); err != nil {
		return nil, fmt.Errorf("read the meta page at %d: %w", offset, err)
	}
	if order.Uint32(b) != magic || order.Uint32(b[4:]) != version || order.Uint64(b[56:]) != metaSum(b) {
		return nil, nil
	}
	m := &meta{
		pageSize: int64(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		pages:    order.Uint64(b[40:]),
		txid:     order.Uint64(b[48:]),
	}
	index := uint64(0)
	if offset > 0 {
		index = 1
	}
	switch {
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || bits.OnesCount64(uint64(m.pageSize)) != 1,
		index == 1 && m.pageSize != offset:
		return nil, fmt.Errorf("meta page at %d: page size %d", offset, m.pageSize)
	case m.pages < minPages || m.pages > uint64(size/m.pageSize):
		return nil, fmt.Errorf("meta page at %d: %d pages of %d bytes in a file of %d", offset, m.pages, m.pageSize, size)
	case m.txid%2 != index || m.txid>>63 != 0:
		// bbolt writes the two in turn. The number must not wrap around.
		return nil, fmt.Errorf("meta page at %d: transaction %d", offset, m.txid)
	}
	return m, nil
}

func metaSum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:metaSize-8])
	return h.Sum64()
}
