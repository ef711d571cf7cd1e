// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import "sync"

// byteBudget bounds the memory that bodies of requests hold together. What does not fit is refused at once: waiting for
// room would only hold what the waiter has already. Safe for concurrent use.
type byteBudget struct {
	mu   sync.Mutex
	free int
}

func newByteBudget(size int) *byteBudget { return &byteBudget{free: size} }

// reserve takes n bytes, or nothing and returns false.
func (b *byteBudget) reserve(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		return false
	}
	b.free -= n
	return true
}

func (b *byteBudget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
}

// budgets are two of a kind, so that clients with made-up tokens take nothing from those that upstream is known to accept.
type budgets struct {
	known, unknown *byteBudget
}

func newBudgets(each int) budgets {
	return budgets{known: newByteBudget(each), unknown: newByteBudget(each)}
}

func (b budgets) of(known bool) *byteBudget {
	if known {
		return b.known
	}
	return b.unknown
}
