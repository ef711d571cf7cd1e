// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// model is a plain map that remembers all of its states, and a store that must behave like it. LISTs are in
// modellist_test.go.
type model struct {
	store    *Store
	choose   func(n int) int // from 0 to n-1
	revision uint64
	floor    uint64
	current  map[string]version
	states   []modelState // one per change of the revision, since the last Reset
	writes   int
	resets   int
	open     *openList
	trace    []string
}

type modelState struct {
	revision uint64
	objects  map[string]version
}

func newModel(store *Store, choose func(n int) int) *model {
	m := &model{store: store, choose: choose, revision: store.Revision(), floor: store.Revision(), current: map[string]version{}}
	m.remember()
	return m
}

func (m *model) remember() {
	m.states = append(m.states, modelState{m.revision, maps.Clone(m.current)})
}

// at returns the state at a revision, which is that of the change before it.
func (m *model) at(revision uint64) map[string]version {
	after := sort.Search(len(m.states), func(i int) bool { return m.states[i].revision > revision })
	if after == 0 {
		return nil
	}
	return m.states[after-1].objects
}

func (m *model) put(v version, revision uint64) version {
	m.revision, v.revision = revision, revision
	m.current[v.key] = v
	m.remember()
	return v
}

func (m *model) remove(key string) (version, bool) {
	v, ok := m.current[key]
	if ok {
		m.revision++
		v.revision = m.revision
		delete(m.current, key)
		m.remember()
	}
	return v, ok
}

// fresh returns new content for a key.
func (m *model) fresh(key string) version {
	m.writes++
	return version{key: key, content: fmt.Sprint(m.writes), in: []string{"yes", "no"}[m.choose(2)]}
}

func (m *model) key() string { return fmt.Sprintf("/pods/%c/p%d", "ab"[m.choose(2)], m.choose(3)) }

// past returns a revision of the last changes, or one between them.
func (m *model) past() uint64 { return m.revision - min(m.revision-1, uint64(m.choose(12))) }

func (m *model) failf(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nlast operations:\n  %s", fmt.Sprintf(format, args...), strings.Join(m.trace[max(0, len(m.trace)-12):], "\n  "))
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

// step does one operation on both, and compares what the store answers.
func (m *model) step(t testing.TB) {
	t.Helper()
	key := m.key()
	switch m.choose(12) {
	case 0:
		m.create(t, key)
	case 1, 2:
		m.update(t, key)
	case 3:
		m.delete(t, key)
	case 4, 5:
		m.apply(t)
	case 6:
		m.applyRefused(t)
	case 7:
		m.revision += uint64(m.choose(3))
		m.note("Advance to %d", m.revision)
		m.store.Advance(m.revision)
		m.remember()
	case 8:
		target := m.past()
		m.note("Compact to %d", target)
		m.floor = max(m.floor, target)
		m.store.Compact(target)
	case 9:
		if m.choose(8) == 0 {
			m.reset()
		}
	case 10:
		m.list(t)
	case 11:
		m.get(t, key)
	}
	if got := m.store.Revision(); got != m.revision {
		m.failf(t, "the revision is %d, want %d", got, m.revision)
	}
	m.checkStored(t, key)
}

func (m *model) checkStored(t testing.TB, key string) {
	t.Helper()
	out := &example.Pod{}
	err := m.store.Get(t.Context(), key, storage.GetOptions{}, out)
	want, exists := m.current[key]
	if !exists {
		if !storage.IsNotFound(err) {
			m.failf(t, "Get of %s: %v, want not found", key, err)
		}
		return
	}
	m.checkResult(t, "Get of "+key, err, out, want)
}

// checkResult compares an object that the store returned.
func (m *model) checkResult(t testing.TB, what string, err error, out *example.Pod, want version) {
	t.Helper()
	if err != nil {
		m.failf(t, "%s: %v", what, err)
	}
	got, err := versionOf(out)
	if err != nil || got != want {
		m.failf(t, "%s: got %+v, error %v, want %+v", what, got, err, want)
	}
}

func (m *model) create(t testing.TB, key string) {
	t.Helper()
	_, exists := m.current[key]
	v := m.fresh(key)
	object, out := v.object(), &example.Pod{}
	stamped := m.choose(8) == 0
	if stamped {
		object.ResourceVersion = "5"
	}
	m.note("Create %+v, with a resourceVersion: %v", v, stamped)
	err := m.store.Create(t.Context(), key, object, out, 0)
	switch {
	case stamped:
		if !errors.Is(err, storage.ErrResourceVersionSetOnCreate) {
			m.failf(t, "Create of %s with a resourceVersion: %v", key, err)
		}
	case exists:
		if !storage.IsExist(err) {
			m.failf(t, "Create of %s, which exists: %v", key, err)
		}
	default:
		m.checkResult(t, "Create of "+key, err, out, m.put(v, m.revision+1))
	}
}

// condition is a choice of preconditions.
type condition struct {
	*storage.Preconditions
	holds func(v version, exists bool) bool
}

func (m *model) condition(key string) condition {
	present := m.current[key].revision
	switch m.choose(4) {
	case 0: // holds now, but not after another write
		return condition{&storage.Preconditions{ResourceVersion: ptr.To(fmt.Sprint(present))}, func(v version, exists bool) bool { return exists && v.revision == present }}
	case 1:
		return condition{&storage.Preconditions{ResourceVersion: ptr.To(fmt.Sprint(present + 1_000_000))}, func(version, bool) bool { return false }}
	case 2:
		return condition{&storage.Preconditions{UID: ptr.To(types.UID("other"))}, func(version, bool) bool { return false }}
	default:
		return condition{nil, func(version, bool) bool { return true }}
	}
}

// suggestion is what a caller believes to be stored: nothing, what is, or what was.
func (m *model) suggestion(key string) runtime.Object {
	v, exists := m.current[key]
	switch old := m.states[m.choose(len(m.states))].objects[key]; {
	case m.choose(2) == 0:
		return nil
	case m.choose(2) == 0 && exists:
		return v.stored()
	case old.key != "":
		return old.stored()
	}
	return nil
}

func (v version) stored() runtime.Object {
	object := v.object()
	object.ResourceVersion = fmt.Sprint(v.revision)
	return object
}

var errRefused = errors.New("refused")

// interfere is another writer who comes between the reading and the writing of an update or a deletion.
func (m *model) interfere(t testing.TB, key string) {
	t.Helper()
	change := Change{Key: key}
	if m.choose(3) == 0 {
		m.note("  meanwhile: Apply of the deletion of %s", key)
		m.remove(key)
	} else {
		v := m.put(m.fresh(key), m.revision+1)
		m.note("  meanwhile: Apply of %+v", v)
		change.Object = v.object()
	}
	if _, err := m.store.Apply(change); err != nil {
		m.failf(t, "Apply: %v", err)
	}
}

func (m *model) update(t testing.TB, key string) {
	t.Helper()
	const change, noChange, refuse, conflict = 0, 1, 2, 3
	what := []int{change, change, noChange, refuse, conflict}[m.choose(5)]
	ignoreNotFound, condition, suggestion := m.choose(2) == 0, m.condition(key), m.suggestion(key)
	next := m.fresh(key)
	m.note("GuaranteedUpdate of %s, %d, ignoreNotFound %v, preconditions %v, suggestion %v", key, what, ignoreNotFound, condition.Preconditions, suggestion != nil)

	interfered := false
	var input version // of the last call
	update := func(object runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		in, err := versionOf(object.(*example.Pod))
		if err != nil {
			return nil, nil, err
		}
		if input = in; in.revision != meta.ResourceVersion {
			m.failf(t, "the update function got %+v with the revision %d", in, meta.ResourceVersion)
		}
		switch {
		case what == refuse:
			return nil, nil, errRefused
		case what == noChange && in.content != "":
			return object, nil, nil
		case what == conflict && !interfered:
			interfered = true
			m.interfere(t, key)
		}
		return next.object(), nil, nil
	}
	out := &example.Pod{}
	err := m.store.GuaranteedUpdate(t.Context(), key, out, ignoreNotFound, condition.Preconditions, update, suggestion)
	present, exists := m.current[key]
	switch {
	case !exists && !ignoreNotFound:
		if !storage.IsNotFound(err) {
			m.failf(t, "GuaranteedUpdate of %s, which does not exist: %v", key, err)
		}
		return
	case !condition.holds(present, exists):
		if !storage.IsInvalidObj(err) {
			m.failf(t, "GuaranteedUpdate of %s, whose precondition fails: %v", key, err)
		}
		return
	case what == refuse:
		if !errors.Is(err, errRefused) {
			m.failf(t, "GuaranteedUpdate of %s, which is refused: %v", key, err)
		}
		return
	}
	if exists && input != present || !exists && input.content != "" {
		m.failf(t, "the update function of %s decided on %+v, present was %+v", key, input, present)
	}
	if what != noChange || !exists {
		present = m.put(next, m.revision+1)
	}
	m.checkResult(t, "GuaranteedUpdate of "+key, err, out, present)
}

func (m *model) delete(t testing.TB, key string) {
	t.Helper()
	const refuse, conflict = 0, 1
	what, condition, suggestion := m.choose(5), m.condition(key), m.suggestion(key)
	m.note("Delete of %s, %d, preconditions %v, suggestion %v", key, what, condition.Preconditions, suggestion != nil)
	interfered := false
	var input version
	validate := func(_ context.Context, object runtime.Object) error {
		in, err := versionOf(object.(*example.Pod))
		input = in
		switch {
		case what == refuse:
			return errRefused
		case what == conflict && !interfered:
			interfered = true
			m.interfere(t, key)
		}
		return err
	}
	out := &example.Pod{}
	err := m.store.Delete(t.Context(), key, out, condition.Preconditions, validate, suggestion, storage.DeleteOptions{})
	present, exists := m.current[key]
	switch {
	case !exists:
		if !storage.IsNotFound(err) {
			m.failf(t, "Delete of %s, which does not exist: %v", key, err)
		}
		return
	case !condition.holds(present, exists):
		if !storage.IsInvalidObj(err) {
			m.failf(t, "Delete of %s, whose precondition fails: %v", key, err)
		}
		return
	case what == refuse:
		if !errors.Is(err, errRefused) {
			m.failf(t, "Delete of %s, which is refused: %v", key, err)
		}
		return
	}
	if input != present {
		m.failf(t, "the deletion of %s was validated with %+v, present was %+v", key, input, present)
	}
	gone, _ := m.remove(key)
	m.checkResult(t, "Delete of "+key, err, out, gone)
}

// apply puts and deletes several keys, some at given revisions.
func (m *model) apply(t testing.TB) {
	t.Helper()
	var changes []Change
	for range 1 + m.choose(5) {
		change := Change{Key: m.key()}
		if m.choose(3) == 0 {
			m.remove(change.Key)
		} else {
			revision := m.revision + 1
			if m.choose(3) == 0 {
				revision += uint64(m.choose(4))
				change.Revision = revision
			}
			change.Object = m.put(m.fresh(change.Key), revision).object()
		}
		changes = append(changes, change)
	}
	m.note("Apply of %d changes, up to %d", len(changes), m.revision)
	if revision, err := m.store.Apply(changes...); err != nil || revision != m.revision {
		m.failf(t, "Apply: revision %d, want %d, error %v", revision, m.revision, err)
	}
}

// applyRefused applies a batch whose last change cannot be, so none of it is.
func (m *model) applyRefused(t testing.TB) {
	t.Helper()
	var changes []Change
	for range m.choose(3) {
		v := m.fresh(m.key())
		changes = append(changes, Change{Key: v.key, Object: v.object()})
	}
	bad := Change{Key: m.key(), Object: m.fresh("/pods/a/p0").object(), Revision: m.revision}
	switch m.choose(3) {
	case 0:
		bad.Revision, bad.Key = 0, "/services/a/p0"
	case 1:
		bad.Revision, bad.Object = 0, &example.ReplicaSet{}
	}
	m.note("Apply of %d changes and %+v", len(changes), bad)
	if revision, err := m.store.Apply(append(changes, bad)...); err == nil || revision != m.revision {
		m.failf(t, "Apply of what cannot be: revision %d, want %d, error %v", revision, m.revision, err)
	}
}

// reset replaces everything, at a smaller or at a larger revision.
func (m *model) reset() {
	revision := uint64(1 + m.choose(2*int(m.revision)))
	m.current, m.states = map[string]version{}, nil
	objects := map[string]runtime.Object{}
	m.revision = revision
	for range m.choose(5) {
		v := m.fresh(m.key())
		object := v.object()
		if v.revision = revision; m.choose(2) == 0 {
			v.revision = uint64(1 + m.choose(int(revision)+2))
			object.ResourceVersion = fmt.Sprint(v.revision)
		}
		m.current[v.key], objects[v.key] = v, object
	}
	for _, v := range m.current {
		m.revision = max(m.revision, v.revision)
	}
	m.note("Reset to %d with %d objects", revision, len(objects))
	m.store.Reset(revision, objects)
	m.floor, m.open = m.revision, nil
	m.resets++
	m.remember()
}

func (m *model) get(t testing.TB, key string) {
	t.Helper()
	present, exists := m.current[key]
	opts := storage.GetOptions{IgnoreNotFound: m.choose(2) == 0, ResourceVersion: []string{"", "0", fmt.Sprint(m.past()), fmt.Sprint(m.revision + 1)}[m.choose(4)]}
	m.note("Get of %s: %+v", key, opts)
	out := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "before"}}
	err := m.store.Get(t.Context(), key, opts, out)
	switch {
	case opts.ResourceVersion == fmt.Sprint(m.revision+1):
		if !storage.IsTooLargeResourceVersion(err) {
			m.failf(t, "Get of %s from the future: %v", key, err)
		}
	case exists:
		m.checkResult(t, "Get of "+key, err, out, present)
	case opts.IgnoreNotFound:
		if diff := cmp.Diff(&example.Pod{}, out); err != nil || diff != "" {
			m.failf(t, "Get of %s, ignoring that it does not exist: %v\n%s", key, err, diff)
		}
	case !storage.IsNotFound(err):
		m.failf(t, "Get of %s, which does not exist: %v", key, err)
	}
}

func TestRandomOperationsMatchModel(t *testing.T) {
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		atRandom(t, 10, func(t *testing.T, random *rand.Rand) {
			m := newModel(newStore(t, func(cfg *Config) { cfg.InitialRevision = random.Uint64N(1_000) }), random.IntN)
			for range 400 {
				m.step(t)
			}
		})
	})
}

// FuzzStore reads bytes as choices, and checks at the end that a watch saw exactly the changes. The first byte is the mode.
func FuzzStore(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 3, 0, 1, 0, 1, 0, 0, 10, 1, 2, 3})
	f.Add([]byte{1, 4, 255, 5, 7, 6, 1, 7, 2, 8, 3, 0, 0, 3, 1, 1, 2, 8, 5, 11, 2, 1})
	f.Add([]byte{0, 1, 0, 2, 8, 1, 7, 0, 8, 1, 3, 1, 8, 1, 9, 0, 1, 1, 10, 4, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1_500 {
			return
		}
		store := modes[int(data[0])%len(modes)].newStore(t)
		data = data[1:]
		m := newModel(store, func(n int) int {
			if len(data) == 0 {
				return 0
			}
			choice := int(data[0]) % n
			data = data[1:]
			return choice
		})
		w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(m.revision)})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		replay := newReplay(m.revision)
		for len(data) > 0 {
			m.step(t)
		}
		last := m.put(m.fresh("/pods/a/last"), m.revision+1)
		if _, err := store.Apply(Change{Key: last.key, Object: last.object()}); err != nil {
			t.Fatal(err)
		}
		for replay.revision != m.revision {
			event := next(t, w)
			if expired, err := replay.take(event); err != nil {
				t.Fatal(err)
			} else if expired {
				if m.resets == 0 && m.floor <= replay.revision {
					t.Fatalf("the watch expired at %d, though nothing after %d was forgotten", replay.revision, m.floor)
				}
				return
			}
			if m.resets > 0 {
				continue // what was before the Reset, whose states are not remembered
			}
			want := map[string]string{}
			for key, v := range m.at(replay.revision) {
				want[key] = v.content
			}
			if diff := cmp.Diff(want, replay.state); diff != "" {
				t.Fatalf("the watch at %d (-want +got):\n%s", replay.revision, diff)
			}
		}
	})
}

func (m *model) keys(s selection, state map[string]version) []string {
	keys := []string{}
	for key, v := range state {
		if s.has(v) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestResetStampsWhatHasNoRevision(t *testing.T) {
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		const given, larger, count = 100, 200, 20
		store := newStore(t)
		objects := map[string]runtime.Object{}
		for i := range count {
			name := fmt.Sprintf("p%02d", i)
			object := pod("ns", name, "1")
			if i%2 == 0 {
				object.ResourceVersion = fmt.Sprint(larger)
			}
			objects["/pods/ns/"+name] = object
		}
		store.Reset(given, objects)
		for i := range count {
			out := &example.Pod{}
			if err := store.Get(t.Context(), fmt.Sprintf("/pods/ns/p%02d", i), storage.GetOptions{}, out); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint([]int{larger, given}[i%2]); out.ResourceVersion != want {
				t.Errorf("%s has resourceVersion %s, want %s", out.Name, out.ResourceVersion, want)
			}
		}
		if store.Revision() != larger {
			t.Errorf("the store is at %d, want %d", store.Revision(), larger)
		}
	})
}
