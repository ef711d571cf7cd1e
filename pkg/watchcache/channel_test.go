// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// channel is the list-and-watch of one resource of upstream. While it is cut,
// upstream changes and the view does not hear of it; the next list tells all.
type channel[T object] struct {
	kind      string
	has       map[types.NamespacedName]T // upstream
	connected bool
	// told is what the view was told, and synced whether it was told a list.
	told   map[types.NamespacedName]T
	synced *bool

	set     func(*View, T)
	remove  func(*View, types.NamespacedName, string)
	replace func(*View, []T)
	of      func(*reference) (map[types.NamespacedName]T, *bool)
}

func newChannel[T object](kind string, set func(*View, T), remove func(*View, types.NamespacedName, string), replace func(*View, []T),
	of func(*reference) (map[types.NamespacedName]T, *bool)) *channel[T] {
	return &channel[T]{kind: kind, has: map[types.NamespacedName]T{}, set: set, remove: remove, replace: replace, of: of}
}

// attach connects the channel with the reference of a new view.
func (c *channel[T]) attach(r *reference) {
	c.connected = false
	c.told, c.synced = c.of(r)
}

// put adds or changes an object upstream.
func (c *channel[T]) put(m *interleaving, obj T) {
	obj.SetResourceVersion(m.nextRevision())
	c.has[keyOf(obj)] = obj
	if c.connected {
		c.tell(m, obj)
	}
}

func (c *channel[T]) tell(m *interleaving, obj T) {
	m.tell(fmt.Sprintf("%s %s was set", c.kind, keyOf(obj)), func() {
		c.told[keyOf(obj)] = obj
		c.set(m.view, handOver(m, obj))
	})
}

// delete deletes an object upstream, which may not be there.
func (c *channel[T]) delete(m *interleaving, name types.NamespacedName) {
	delete(c.has, name)
	if !c.connected {
		return
	}
	revision := ""
	if !m.oneIn(4) {
		revision = m.nextRevision()
	}
	m.tell(fmt.Sprintf("%s %s was deleted", c.kind, name), func() {
		delete(c.told, name)
		m.stood.deleted(c.kind, name, revision)
		c.remove(m.view, name, revision)
	})
}

// repeat has upstream write an object without a change that matters, or the view
// hear of it once more.
func (c *channel[T]) repeat(m *interleaving) {
	names := sortedKeys(c.has)
	if len(names) == 0 {
		return
	}
	obj := c.has[pick(m.generator, names)]
	if m.oneIn(2) && c.connected {
		c.tell(m, obj)
		return
	}
	obj = obj.DeepCopyObject().(T)
	m.touch(obj)
	c.put(m, obj)
}

// relist tells the view all that upstream has, in any order.
func (c *channel[T]) relist(m *interleaving) {
	names := shuffled(m.generator, sortedKeys(c.has))
	m.tell(fmt.Sprintf("%s were listed: %v", c.kind, names), func() {
		clear(c.told)
		m.stood.listed(c.kind)
		maps.Copy(c.told, c.has)
		*c.synced, c.connected = true, true
		all := make([]T, 0, len(names))
		for _, name := range names {
			all = append(all, handOver(m, c.has[name]))
		}
		c.replace(m.view, all)
	})
}

// handOver returns a copy of an object that may become the view's. What it must
// not do to it is looked at when the view ends.
func handOver[T object](m *interleaving, obj T) T {
	given := obj.DeepCopyObject().(T)
	m.handedOver = append(m.handedOver, handedOver{given: given, want: obj})
	return given
}

func sortedKeys[T any](all map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
