// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"fmt"
)

// element is one element of a branch page, which has a child, or of a leaf
// page, which has a value.
type element struct {
	key    []byte
	child  uint64
	value  []byte
	bucket bool
}

// elements returns the elements of a branch or leaf page, and the bytes after
// the last one. They are an array of fixed size, then the keys and values in
// the same order without a gap. Keys ascend; the first is low and the last is
// below high, each unless nil.
func (p page) elements(low, high []byte) (elements []element, rest []byte, err error) {
	if p.flags != branchFlag && p.flags != leafFlag {
		return nil, nil, fmt.Errorf("flags %#x are no branch and no leaf", p.flags)
	}
	start := headerSize + int(p.count)*elementSize
	if start > len(p.bytes) {
		return nil, nil, fmt.Errorf("no room for %d elements", p.count)
	}
	rest = p.bytes[start:]
	elements = make([]element, p.count)
	for i := range elements {
		e, at := &elements[i], headerSize+i*elementSize
		head := p.bytes[at:]
		var pos, ksize, vsize uint64
		if p.flags == branchFlag {
			pos, ksize = uint64(order.Uint32(head)), uint64(order.Uint32(head[4:]))
			e.child = order.Uint64(head[8:])
		} else {
			flags := order.Uint32(head)
			if flags > 1 {
				return nil, nil, fmt.Errorf("element %d has flags %#x", i, flags)
			}
			e.bucket = flags == 1
			pos, ksize, vsize = uint64(order.Uint32(head[4:])), uint64(order.Uint32(head[8:])), uint64(order.Uint32(head[12:]))
		}
		if want := len(p.bytes) - len(rest) - at; pos != uint64(want) {
			return nil, nil, fmt.Errorf("the key of element %d is at %d instead of %d", i, pos, want)
		}
		if ksize == 0 || ksize+vsize > uint64(len(rest)) {
			return nil, nil, fmt.Errorf("element %d has a key of %d bytes and a value of %d, of %d", i, ksize, vsize, len(rest))
		}
		e.key, e.value, rest = rest[:ksize], rest[ksize:ksize+vsize], rest[ksize+vsize:]
		if i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0 {
			return nil, nil, fmt.Errorf("the key of element %d is not above the one before", i)
		}
	}
	n := len(elements)
	if low != nil && (n == 0 || !bytes.Equal(elements[0].key, low)) {
		return nil, nil, fmt.Errorf("the first key is not %q as the branch above has it", low)
	}
	if high != nil && n > 0 && bytes.Compare(elements[n-1].key, high) >= 0 {
		return nil, nil, fmt.Errorf("key %q is not below the next of the branch above, %q", elements[n-1].key, high)
	}
	return elements, rest, nil
}
