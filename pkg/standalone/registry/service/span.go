// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

// span is a range of offsets from 0 to size-1. The first ones, up to reserved,
// are for those who ask for them by value: they are picked only when no other
// is free (KEP-3070, KEP-3668).
type span struct {
	size, reserved uint64
}

// newSpan reserves size/step offsets, but at least 16 and at most limit;
// none if there are no more than 16.
func newSpan(size, total, step, limit uint64) span {
	const least = 16
	if total <= least {
		return span{size: size}
	}
	return span{size: size, reserved: min(max(total/step, least), limit, size)}
}

// pick returns a free offset: the first one from a random start, so that one
// that was just released is not handed out again at once. It returns false if
// there is none.
func (s span) pick(random func(n uint64) uint64, taken func(offset uint64) bool) (uint64, bool) {
	if offset, ok := pickBetween(s.reserved, s.size, random, taken); ok {
		return offset, true
	}
	return pickBetween(0, s.reserved, random, taken)
}

func pickBetween(from, to uint64, random func(n uint64) uint64, taken func(offset uint64) bool) (uint64, bool) {
	if from == to {
		return 0, false
	}
	start := from + random(to-from)
	for offset := start; offset < to; offset++ {
		if !taken(offset) {
			return offset, true
		}
	}
	for offset := from; offset < start; offset++ {
		if !taken(offset) {
			return offset, true
		}
	}
	return 0, false
}
