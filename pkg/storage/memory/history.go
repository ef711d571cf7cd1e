// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sort"
	"time"
)

// chunkSize is how many changes are allocated, and forgotten, together. A watch that is blocked in a send keeps one chunk
// alive at most.
const chunkSize = 128

// record is one change. It never changes after it was appended.
type record struct {
	entry    *entry // what the key became; entry.deleted: it went away
	previous *entry // what the key was; nil: it did not exist
	at       time.Time
}

// history is the window of changes, a queue of chunks. Positions count from the first change ever appended, so a
// position stays valid while the window moves. It has no lock of its own: log.mu guards it. Slices that it handed out
// stay readable without the lock, because a chunk is only ever appended to, within its capacity.
type history struct {
	chunks [][]record
	base   uint64 // position of chunks[0][0]
	first  uint64 // position of the oldest change in the window, base <= first
	next   uint64 // position that the next change gets
}

func (h *history) len() int { return int(h.next - h.first) }

func (h *history) append(r record) {
	last := len(h.chunks) - 1
	if last < 0 || len(h.chunks[last]) == chunkSize {
		h.chunks = append(h.chunks, make([]record, 0, chunkSize))
		last++
	}
	h.chunks[last] = append(h.chunks[last], r)
	h.next++
}

func (h *history) at(position uint64) *record {
	offset := position - h.base
	return &h.chunks[offset/chunkSize][offset%chunkSize]
}

// read returns changes from position on, as many as lie side by side; none if position is the end.
func (h *history) read(position uint64) []record {
	if position >= h.next {
		return nil
	}
	offset := position - h.base
	return h.chunks[offset/chunkSize][offset%chunkSize:]
}

// readAll returns all changes from position on, in order, without copying them.
func (h *history) readAll(position uint64) [][]record {
	var out [][]record
	for position < h.next {
		part := h.read(position)
		out = append(out, part)
		position += uint64(len(part))
	}
	return out
}

// after returns the position of the first change in the window whose revision is larger; next if there is none.
func (h *history) after(revision uint64) uint64 {
	return h.search(func(r *record) bool { return r.entry.revision > revision })
}

// search returns the first position in the window for which found is true; found must be monotonic.
func (h *history) search(found func(*record) bool) uint64 {
	return h.first + uint64(sort.Search(h.len(), func(i int) bool { return found(h.at(h.first + uint64(i))) }))
}

// forget moves the start of the window to position. The slots before it are released a chunk at a time, so up to
// chunkSize-1 forgotten changes still hold their objects; clearing them would write to what readers may be reading.
func (h *history) forget(position uint64) {
	h.first = position
	for len(h.chunks) > 0 && len(h.chunks[0]) == chunkSize && h.first >= h.base+chunkSize {
		h.chunks[0] = nil
		h.chunks = h.chunks[1:]
		h.base += chunkSize
	}
}
