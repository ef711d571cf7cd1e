// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// version is an object at a revision.
type version struct {
	revision uint64
	content  string // exactContent
}

// state is what a LIST returns.
type state map[types.NamespacedName]version

// change is one step of a store.
type change struct {
	kind  watch.EventType
	name  types.NamespacedName
	after version
	state state // with this change
	epoch int   // of the changelog
}

func (c change) String() string { return fmt.Sprintf("%s %s@%d", c.kind, c.name, c.after.revision) }

// changelog is what a resource went through, over restarts: read from the store
// revision by revision, and compared with what the changes should be.
type changelog struct {
	resource string
	newList  func() runtime.Object
	store    *memory.Store
	// limit is the number of changes that the store keeps.
	limit int
	// epoch counts the times that the store began anew, with the contents base.
	// The changes before were those of epochs before; nobody can go on from there.
	epoch  int
	base   state
	before int
	// revision is that of the store when it was last looked at.
	revision uint64
	changes  []change
	want     map[types.NamespacedName]string // viewContent
}

// begin goes on with a new, empty store. Its revisions must be new, so that no
// revision ever stands for two states.
func (l *changelog) begin(store *memory.Store, limit int) error {
	start := store.Revision()
	if start <= l.revision {
		return fmt.Errorf("%s begin at revision %d, before there was %d", l.resource, start, l.revision)
	}
	l.store, l.limit, l.want = store, limit, map[types.NamespacedName]string{}
	l.reset(state{})
	return nil
}

// reset begins a new epoch.
func (l *changelog) reset(base state) {
	l.epoch++
	l.base, l.before, l.revision = base, len(l.changes), l.store.Revision()
}

// last returns the state after the last change.
func (l *changelog) last() state {
	if len(l.changes) == l.before {
		return l.base
	}
	return l.changes[len(l.changes)-1].state
}

// add reads the changes since the last call, all of one batch, and compares them
// with the new contents that are expected: each object whose view has changed is
// written once, as it is to be, and nothing else is.
func (l *changelog) add(want contents) error {
	outstanding := l.expect(want)
	revision := l.store.Revision()
	if revision < l.revision || revision-l.revision != uint64(len(outstanding)) {
		return fmt.Errorf("%s went from revision %d to %d, expected to change: %v", l.resource, l.revision, revision, sortedNames(outstanding))
	}
	for at := l.revision + 1; at <= revision; at++ {
		now, err := l.listAt(at)
		if err != nil {
			return err
		}
		c, err := difference(l.last(), now, at)
		if err != nil {
			return fmt.Errorf("%s at revision %d: %w", l.resource, at, err)
		}
		if !outstanding[c.name] {
			return fmt.Errorf("%s: %v though its view has not changed", l.resource, c)
		}
		delete(outstanding, c.name)
		if obj := want[c.name]; obj != nil && c.after.content != exactContent(obj) {
			return fmt.Errorf("%s: %v has not what is expected:\n%s", l.resource, c, describeContents(c.after.content, exactContent(obj)))
		}
		l.append(c)
	}
	l.revision = revision
	return l.checkPresent()
}

func (l *changelog) append(c change) {
	c.epoch = l.epoch
	l.changes = append(l.changes, c)
}

// expect takes over the expected contents, and returns which of them are others
// than before.
func (l *changelog) expect(want contents) map[types.NamespacedName]bool {
	changed := map[types.NamespacedName]bool{}
	for name, obj := range want {
		content := viewContent(obj)
		if old, ok := l.want[name]; !ok || old != content {
			changed[name] = true
			l.want[name] = content
		}
	}
	for name := range l.want {
		if _, ok := want[name]; !ok {
			changed[name] = true
			delete(l.want, name)
		}
	}
	return changed
}

// checkPresent compares a LIST with the state after the last change.
func (l *changelog) checkPresent() error {
	now, revision, err := l.list(storage.ListOptions{Predicate: storage.Everything, Recursive: true})
	if err != nil {
		return err
	}
	if revision != l.revision || !maps.Equal(now, l.last()) {
		return fmt.Errorf("a LIST of %s at revision %d differs from the state after the last change, %d:\n%v\n%v", l.resource, revision, l.revision, now, l.last())
	}
	return nil
}

// skipTo raises the revision as many changes would that end as they began.
func (l *changelog) skipTo(revision uint64) {
	l.store.Advance(revision)
	l.revision = max(l.revision, revision)
}

// listAt lists at exactly that revision.
func (l *changelog) listAt(revision uint64) (state, error) {
	now, at, err := l.list(storage.ListOptions{
		Predicate: storage.Everything, Recursive: true,
		ResourceVersion: strconv.FormatUint(revision, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err == nil && at != revision {
		err = fmt.Errorf("a LIST of %s at revision %d is of revision %d", l.resource, revision, at)
	}
	return now, err
}

func (l *changelog) list(opts storage.ListOptions) (state, uint64, error) {
	into := l.newList()
	if err := l.store.GetList(context.Background(), "/"+l.resource+"/", opts, into); err != nil {
		return nil, 0, fmt.Errorf("listing %s at %q: %w", l.resource, opts.ResourceVersion, err)
	}
	now := state{}
	err := eachItem(into, func(obj object) { now[keyOf(obj)] = versionOf(obj) })
	if err != nil {
		return nil, 0, err
	}
	list, err := meta.ListAccessor(into)
	if err != nil {
		return nil, 0, err
	}
	revision, err := strconv.ParseUint(list.GetResourceVersion(), 10, 64)
	return now, revision, err
}

// difference returns the one change at a revision that leads from one state to
// another.
func difference(from, to state, at uint64) (change, error) {
	var found []change
	for name, v := range to {
		if old, ok := from[name]; !ok {
			found = append(found, change{kind: watch.Added, name: name, after: v, state: to})
		} else if old != v {
			found = append(found, change{kind: watch.Modified, name: name, after: v, state: to})
		}
	}
	for name, v := range from {
		if _, ok := to[name]; !ok {
			found = append(found, change{kind: watch.Deleted, name: name, after: version{at, v.content}, state: to})
		}
	}
	if len(found) != 1 || found[0].after.revision != at {
		return change{}, fmt.Errorf("want one change, got %v", found)
	}
	return found[0], nil
}

func eachItem(list runtime.Object, visit func(object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(object)
		if !ok {
			return fmt.Errorf("unexpected item %T", item)
		}
		visit(obj)
		return nil
	})
}

func keyOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// versionOf returns an object as it is now; its revision is 0 if it has none.
func versionOf(obj object) version {
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		revision = 0
	}
	return version{revision: revision, content: exactContent(obj)}
}

func sortedNames[T any](names map[types.NamespacedName]T) []string {
	var sorted []string
	for name := range names {
		sorted = append(sorted, name.String())
	}
	slices.Sort(sorted)
	return sorted
}

// describeContents makes two encodings readable: what is text in them is.
func describeContents(got, want string) string {
	return fmt.Sprintf("got  %s\nwant %s", strings.ToValidUTF8(strconv.Quote(got), "?"), strconv.Quote(want))
}
