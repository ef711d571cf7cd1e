// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"cmp"
	"slices"
	"sync"
)

// fakeDomains hands the domain watches to the test, which plays upstream. Its
// methods may be called concurrently.
type fakeDomains struct {
	mu      sync.Mutex
	watches []*fakeWatch
}

type fakeWatch struct {
	key, value string
	sink       DomainSink
	synced     bool
	stopped    bool
	// members is for tests that keep what the watch has told; nil: nothing.
	members map[string]bool
}

func (f *fakeDomains) Watch(key, value string, sink DomainSink) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &fakeWatch{key: key, value: value, sink: sink}
	f.watches = append(f.watches, w)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.stopped = true
	}
}

// open returns the open watches, and ended the others, each in an order that
// does not depend on the one in which a single event opened several.
func (f *fakeDomains) open() []*fakeWatch { return f.sorted(false) }

func (f *fakeDomains) ended() []*fakeWatch { return f.sorted(true) }

func (f *fakeDomains) sorted(stopped bool) []*fakeWatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*fakeWatch
	for _, w := range f.watches {
		if w.stopped == stopped {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b *fakeWatch) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
	})
	return all
}

// replace notes that the watch tells a list.
func (w *fakeWatch) replace(names []string) {
	w.members = map[string]bool{}
	for _, name := range names {
		w.members[name] = true
	}
}
