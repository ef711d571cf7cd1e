// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// object is what the mirrored types have in common.
type object interface {
	runtime.Object
	metav1.Object
}

// Mirror keeps the objects of a cluster-scoped resource as upstream has them,
// under upstream's own revisions. It is safe for concurrent use.
type Mirror struct {
	logger   klog.Logger
	resource string
	store    *memory.Store

	filled chan struct{} // closed by the first list

	mu      sync.Mutex
	objects map[string]object
	// changed wakes those that wait for the mirror to come to a write.
	changed broadcast
}

// NewMirror returns an empty mirror that writes to store.
func NewMirror(ctx context.Context, resource string, store *memory.Store) *Mirror {
	return &Mirror{
		logger: klog.FromContext(ctx), resource: resource, store: store,
		filled: make(chan struct{}), objects: map[string]object{},
	}
}

// Filled returns a channel that is closed when the store holds the first list.
func (m *Mirror) Filled() <-chan struct{} { return m.filled }

// Set tells that an object was added or changed upstream.
func (m *Mirror) Set(obj object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed.notifyLocked()
	m.objects[obj.GetName()] = obj
	m.applyLocked(obj.GetResourceVersion(), memory.Change{Key: m.key(obj.GetName()), Object: obj})
}

// Delete tells that an object was deleted upstream; obj carries the revision of
// the deletion.
func (m *Mirror) Delete(obj object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed.notifyLocked()
	delete(m.objects, obj.GetName())
	m.applyLocked(obj.GetResourceVersion(), memory.Change{Key: m.key(obj.GetName())})
}

// Progress tells that upstream has come to a revision without a change.
func (m *Mirror) Progress(resourceVersion string) {
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		m.store.Advance(revision)
	}
}

// Replace tells all objects at once, as upstream had them at resourceVersion.
// Open watches receive the difference, unless upstream's revisions leave no
// room for it, as when they went backwards: then the watches end with 410.
func (m *Mirror) Replace(all []object, resourceVersion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed.notifyLocked()
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		m.logger.Error(err, "Upstream's list has no usable resourceVersion", "resource", m.resource, "resourceVersion", resourceVersion)
		return
	}
	objects := make(map[string]object, len(all))
	for _, obj := range all {
		objects[obj.GetName()] = obj
	}
	if !isClosed(m.filled) {
		m.objects = objects
		m.resetLocked(revision)
		close(m.filled)
		return
	}
	changes, ok := m.differenceLocked(objects, revision)
	m.objects = objects
	if !ok {
		m.resetLocked(revision)
		return
	}
	if _, err := m.store.Apply(changes...); err != nil {
		m.logger.Error(err, "Cannot write the difference, ending the watches", "resource", m.resource)
		m.resetLocked(revision)
		return
	}
	m.store.Advance(revision)
}

// Await waits until what the mirror knows of an object satisfies until, or ctx
// ends, and reports whether it does. It returns true at once before the first list.
func (m *Mirror) Await(ctx context.Context, name string, until func(Upstream) bool) bool {
	for {
		m.mu.Lock()
		var known Upstream
		if obj, ok := m.objects[name]; ok {
			known = Upstream{Exists: true, UID: string(obj.GetUID()), Revision: obj.GetResourceVersion(), Deleting: obj.GetDeletionTimestamp() != nil}
		}
		changed := m.changed.waitLocked()
		m.mu.Unlock()
		if !isClosed(m.filled) || until(known) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// AwaitRevision waits until the mirror has come to a revision upstream, or ctx
// ends, and reports whether it has. It returns true at once before the first list.
func (m *Mirror) AwaitRevision(ctx context.Context, revision string) bool {
	want, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		return false
	}
	for {
		m.mu.Lock()
		changed := m.changed.waitLocked()
		m.mu.Unlock()
		if !isClosed(m.filled) || m.store.Revision() >= want {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// differenceLocked returns the changes that lead from the present objects to
// those of a list, in the order of their revisions. A list does not tell at
// which revision an object was deleted: a deletion gets a free one of those
// that passed since the last event. False means that there is no such order.
func (m *Mirror) differenceLocked(objects map[string]object, revision uint64) ([]memory.Change, bool) {
	current := m.store.Revision()
	var changes []memory.Change
	used := map[uint64]bool{}
	for name, obj := range objects {
		if old, ok := m.objects[name]; ok && equality.Semantic.DeepEqual(old, obj) {
			continue
		}
		at, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		if err != nil || at <= current || at > revision || used[at] {
			return nil, false
		}
		used[at] = true
		changes = append(changes, memory.Change{Key: m.key(name), Object: obj, Revision: at})
	}
	free := revision
	for name := range m.objects {
		if _, ok := objects[name]; ok {
			continue
		}
		for used[free] {
			free--
		}
		if free <= current {
			return nil, false
		}
		changes = append(changes, memory.Change{Key: m.key(name), Revision: free})
		free--
	}
	slices.SortFunc(changes, func(a, b memory.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return changes, revision >= current
}

func (m *Mirror) applyLocked(resourceVersion string, change memory.Change) {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err == nil && revision <= m.store.Revision() {
		err = fmt.Errorf("revision %d is not above %d", revision, m.store.Revision())
	}
	if err == nil {
		change.Revision = revision
		_, err = m.store.Apply(change)
	}
	if err != nil {
		m.logger.Error(err, "Upstream's event is out of order, ending the watches", "resource", m.resource, "key", change.Key)
		m.resetLocked(max(revision, 1))
	}
}

func (m *Mirror) resetLocked(revision uint64) {
	objects := make(map[string]runtime.Object, len(m.objects))
	for name, obj := range m.objects {
		objects[m.key(name)] = obj
	}
	m.store.Reset(revision, objects)
}

func (m *Mirror) key(name string) string { return "/" + m.resource + "/" + name }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
