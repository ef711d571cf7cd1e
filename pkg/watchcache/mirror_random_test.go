// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// TestMirrorEqualsUpstream runs random interleavings of what can happen to a
// mirrored resource, an upstream whose revisions go back included.
func TestMirrorEqualsUpstream(t *testing.T) {
	playRandom(t, func(seed uint64, steps []int, trace func(string)) error {
		m, err := newMirrorInterleaving(seed)
		if err != nil {
			return err
		}
		defer m.log.store.Stop()
		m.trace = trace
		for _, step := range steps {
			if err := m.step(step); err != nil {
				return err
			}
		}
		for _, c := range m.clients {
			if err := errors.Join(m.meet(c), c.readAll()); err != nil {
				return fmt.Errorf("client %s: %w", c.name, err)
			}
		}
		return nil
	})
}

// mirrorInterleaving is an upstream of Namespaces, its mirror, and clients.
type mirrorInterleaving struct {
	generator
	seed      uint64
	trace     func(string)
	has       map[string]*corev1.Namespace // upstream
	revision  uint64                       // of upstream
	connected bool

	mirror  *Mirror
	told    map[string]*corev1.Namespace
	log     *changelog
	clients []*client
	floor   uint64 // the revision at which the watches were last ended
}

var namespaceKind = storeKind{
	"namespaces", func() runtime.Object { return &corev1.Namespace{} }, func() runtime.Object { return &corev1.NamespaceList{} },
}

func newMirrorInterleaving(seed uint64) (*mirrorInterleaving, error) {
	m := &mirrorInterleaving{
		generator: newGenerator(seed, 0), seed: seed, has: map[string]*corev1.Namespace{}, revision: 100,
		told: map[string]*corev1.Namespace{}, log: &changelog{resource: namespaceKind.resource, newList: namespaceKind.newList},
	}
	limit := pick(m.generator, []int{10_000, 10})
	store, err := namespaceKind.newStore(1, limit)
	if err != nil {
		return nil, err
	}
	m.mirror = NewMirror(klog.NewContext(context.Background(), klog.New(nil)), "namespaces", store)
	for _, habits := range clientKinds {
		m.clients = append(m.clients, &client{clientKind: habits, log: m.log})
	}
	return m, m.log.begin(store, limit)
}

func (m *mirrorInterleaving) step(number int) error {
	m.generator = newGenerator(m.seed, uint64(number)+1)
	m.revision += uint64(m.IntN(3)) // other resources count too
	name := pick(m.generator, []string{"a", "b", "c", "d"})
	var err error
	switch m.IntN(16) {
	default:
		err = m.set(name)
	case 7, 8, 9:
		err = m.delete(name)
	case 10, 11:
		if m.connected {
			err = m.progress(m.revision - min(m.revision-1, uint64(m.IntN(3)))) // it may be late
		}
	case 12:
		m.connected = false
	case 13, 14:
		err = m.relist()
	case 15:
		// As when etcd is restored from a backup. The watch may be cut, or not.
		m.revision -= min(m.revision-1, uint64(m.IntN(12)))
		m.connected = m.connected && m.oneIn(2)
	}
	if err != nil {
		return err
	}
	for i, c := range m.clients {
		if !isClosed(m.mirror.Filled()) {
			continue
		}
		if err := errors.Join(m.meet(c), c.step(newGenerator(m.seed, uint64(number)<<8|uint64(i)|1<<32))); err != nil {
			return fmt.Errorf("client %s: %w", c.name, err)
		}
	}
	return nil
}

func (m *mirrorInterleaving) note(format string, args ...any) string {
	what := fmt.Sprintf(format, args...)
	if m.trace != nil {
		m.trace(what)
	}
	return what
}

func (m *mirrorInterleaving) set(name string) error {
	m.revision++
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.labels(), ResourceVersion: strconv.FormatUint(m.revision, 10)}}
	m.has[name] = obj
	if !m.connected {
		return nil
	}
	what := m.note("%s was set at %d", name, m.revision)
	want := m.wanted(map[string]uint64{name: m.revision}, nil, m.revision)
	m.told[name] = obj
	m.mirror.Set(obj.DeepCopy())
	return m.check(what, want)
}

func (m *mirrorInterleaving) delete(name string) error {
	obj := m.has[name]
	if obj == nil {
		return nil
	}
	m.revision++
	delete(m.has, name)
	if !m.connected {
		return nil
	}
	what := m.note("%s was deleted at %d", name, m.revision)
	want := m.wanted(map[string]uint64{name: m.revision}, nil, m.revision)
	delete(m.told, name)
	obj = obj.DeepCopy()
	obj.ResourceVersion = strconv.FormatUint(m.revision, 10)
	m.mirror.Delete(obj)
	return m.check(what, want)
}

func (m *mirrorInterleaving) progress(revision uint64) error {
	what := m.note("nothing more up to %d", revision)
	m.mirror.Progress(strconv.FormatUint(revision, 10))
	return m.check(what, mirrorWant{revision: max(revision, m.log.revision)})
}

func (m *mirrorInterleaving) relist() error {
	changed := map[string]uint64{}
	var deleted []string
	var all []object
	for _, name := range shuffled(m.generator, slices.Sorted(maps.Keys(m.has))) {
		obj := m.has[name]
		all = append(all, obj.DeepCopy())
		if old := m.told[name]; old == nil || versionOf(old) != versionOf(obj) {
			changed[name] = versionOf(obj).revision
		}
	}
	for name := range m.told {
		if m.has[name] == nil {
			deleted = append(deleted, name)
		}
	}
	what := m.note("listed at %d, changed %v, deleted %v", m.revision, changed, deleted)
	want := m.wanted(changed, deleted, m.revision)
	want.reset = want.reset || !isClosed(m.mirror.Filled())
	m.told, m.connected = maps.Clone(m.has), true
	m.mirror.Replace(all, strconv.FormatUint(m.revision, 10))
	return m.check(what, want)
}

// mirrorWant is what an event must do to the store.
type mirrorWant struct {
	// reset: the watches end.
	reset bool
	// changed are the objects that change, at which revisions; deleted have no
	// revision of their own.
	changed  map[string]uint64
	deleted  []string
	revision uint64
}

// wanted says whether the revisions of what has changed leave room for it in the
// order that clients have seen: each revision is new, none stands for two
// changes, and deletions that only a list tells of find free ones.
func (m *mirrorInterleaving) wanted(changed map[string]uint64, deleted []string, revision uint64) mirrorWant {
	want := mirrorWant{changed: changed, deleted: deleted, revision: revision, reset: revision < m.log.revision}
	taken := map[uint64]bool{}
	for _, at := range changed {
		want.reset = want.reset || at <= m.log.revision || at > revision || taken[at]
		taken[at] = true
	}
	free := int(revision) - int(m.log.revision) - len(taken)
	want.reset = want.reset || len(deleted) > free
	return want
}

func (m *mirrorInterleaving) check(what string, want mirrorWant) error {
	if err := m.checkStore(want); err != nil {
		return fmt.Errorf("after %s: %w", what, err)
	}
	return nil
}

func (m *mirrorInterleaving) checkStore(want mirrorWant) error {
	told := state{}
	for _, obj := range m.told {
		told[keyOf(obj)] = versionOf(obj)
	}
	store := m.log.store
	if want.reset {
		return m.checkReset(told, want.revision)
	}
	revision := store.Revision()
	if revision != want.revision {
		return fmt.Errorf("the revision is %d, want %d", revision, want.revision)
	}
	missing := map[string]bool{}
	for at := m.log.revision + 1; at <= revision; at++ {
		now, err := m.log.listAt(at)
		if err != nil {
			return err
		}
		if maps.Equal(now, m.log.last()) {
			continue
		}
		c, err := difference(m.log.last(), now, at)
		if err != nil {
			return err
		}
		missing[c.name.Name] = true
		if wantAt, ok := want.changed[c.name.Name]; ok != !slices.Contains(want.deleted, c.name.Name) || ok && wantAt != at {
			return fmt.Errorf("%v, want %+v", c, want)
		}
		m.log.append(c)
	}
	if len(missing) != len(want.changed)+len(want.deleted) {
		return fmt.Errorf("changed %v, want %+v", sortedNames(m.log.last()), want)
	}
	m.log.revision = revision
	if !maps.Equal(told, m.log.last()) {
		return fmt.Errorf("the mirror has %v, upstream %v", m.log.last(), told)
	}
	return m.log.checkPresent()
}

// checkReset: the contents are there, and no watch goes on.
func (m *mirrorInterleaving) checkReset(told state, revision uint64) error {
	m.log.reset(told)
	for _, v := range told {
		revision = max(revision, v.revision)
	}
	if m.log.revision != revision {
		return fmt.Errorf("the revision is %d after all watches have ended, want %d", m.log.revision, revision)
	}
	m.floor = revision
	return m.log.checkPresent()
}

// meet is called before a client does something. One that was away while
// upstream's revisions went back, and comes with one that is in use again, cannot
// be told from one that is current: it begins anew. One that comes with a
// revision of the future is refused, all others are told.
func (m *mirrorInterleaving) meet(c *client) error {
	if c.watch != nil || c.objects == nil || c.epoch == m.log.epoch || c.last < m.floor {
		return nil
	}
	c.objects = nil
	if c.last <= m.log.revision {
		return nil
	}
	_, err := m.log.store.Watch(context.Background(), "/namespaces/", storage.ListOptions{
		Predicate: storage.Everything, Recursive: true, ResourceVersion: strconv.FormatUint(c.last, 10),
	})
	if !storage.IsTooLargeResourceVersion(err) {
		return fmt.Errorf("a watch from revision %d of the future: %w", c.last, err)
	}
	return nil
}
