// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

const modelKeys = 6

// model is a plain map that remembers all of its states.
type model struct {
	store    *Store
	revision uint64
	current  map[string]string            // key to version
	states   map[uint64]map[string]string // by revision
	floor    uint64
	writes   int
}

func newModel(store *Store) *model {
	m := &model{store: store, revision: store.Revision(), current: map[string]string{}, floor: store.Revision()}
	m.states = map[uint64]map[string]string{m.revision: {}}
	return m
}

func (m *model) remember() {
	state := make(map[string]string, len(m.current))
	for key, version := range m.current {
		state[key] = version
	}
	m.states[m.revision] = state
}

func (m *model) put(key string) string {
	m.writes++
	version := strconv.Itoa(m.writes)
	m.revision++
	m.current[key] = version
	m.remember()
	return version
}

func (m *model) remove(key string) bool {
	if _, ok := m.current[key]; !ok {
		return false
	}
	m.revision++
	delete(m.current, key)
	m.remember()
	return true
}

// step does one operation on both, and compares what the store answered. argument picks the variant.
func (m *model) step(t testing.TB, operation, argument byte) {
	t.Helper()
	name := fmt.Sprintf("p%d", argument%modelKeys)
	key := "/pods/ns/" + name
	ctx := t.Context()
	out := &example.Pod{}
	_, exists := m.current[key]
	switch operation % 9 {
	case 0: // Create
		err := m.store.Create(ctx, key, pod("ns", name, strconv.Itoa(m.writes+1)), out, 0)
		if exists != storage.IsExist(err) || (!exists && err != nil) {
			t.Fatalf("Create of %s, which exists: %v: %v", key, exists, err)
		}
		if !exists {
			m.put(key)
		}
	case 1: // GuaranteedUpdate that changes the content
		err := m.store.GuaranteedUpdate(ctx, key, out, true, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
			return pod("ns", name, strconv.Itoa(m.writes+1)), nil
		}), nil)
		if err != nil {
			t.Fatalf("GuaranteedUpdate of %s: %v", key, err)
		}
		m.put(key)
	case 2: // GuaranteedUpdate that does not
		err := m.store.GuaranteedUpdate(ctx, key, out, false, nil, storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			return in, nil
		}), nil)
		if exists == storage.IsNotFound(err) || (exists && err != nil) {
			t.Fatalf("GuaranteedUpdate without change of %s, which exists: %v: %v", key, exists, err)
		}
	case 3: // Delete
		err := m.store.Delete(ctx, key, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		if exists == storage.IsNotFound(err) || (exists && err != nil) {
			t.Fatalf("Delete of %s, which exists: %v: %v", key, exists, err)
		}
		m.remove(key)
	case 4: // Apply of a batch: puts of some keys, deletions of others
		var changes []Change
		for i := range 1 + int(argument)/modelKeys%5 {
			other := fmt.Sprintf("p%d", (int(argument)+i*i)%modelKeys)
			otherKey := "/pods/ns/" + other
			if (int(argument)+i)%3 == 0 {
				m.remove(otherKey)
				changes = append(changes, Change{Key: otherKey})
			} else {
				changes = append(changes, Change{Key: otherKey, Object: pod("ns", other, m.put(otherKey))})
			}
		}
		if revision, err := m.store.Apply(changes...); err != nil || revision != m.revision {
			t.Fatalf("Apply: revision %d, want %d, error %v", revision, m.revision, err)
		}
	case 5: // Apply with a revision that leaves a gap
		m.revision += uint64(argument)
		version := m.put(key)
		if _, err := m.store.Apply(Change{Key: key, Object: pod("ns", name, version), Revision: m.revision}); err != nil {
			t.Fatalf("Apply at %d: %v", m.revision, err)
		}
	case 6: // Advance
		m.revision += uint64(argument % 3)
		m.remember()
		m.store.Advance(m.revision)
	case 7: // Compact, a little behind
		if target := m.revision - min(m.revision, uint64(argument)); target > m.floor {
			m.floor = target
		}
		m.store.Compact(m.revision - min(m.revision, uint64(argument)))
	case 8: // read back the past
		m.checkList(t, m.revision-min(m.revision, uint64(argument)), int64(argument%4))
	}
	if got := m.store.Revision(); got != m.revision {
		t.Fatalf("operation %d: the revision is %d, want %d", operation%9, got, m.revision)
	}
	m.checkGet(t, key)
}

func (m *model) checkGet(t testing.TB, key string) {
	t.Helper()
	out := &example.Pod{}
	err := m.store.Get(t.Context(), key, storage.GetOptions{}, out)
	version, exists := m.current[key]
	if exists == storage.IsNotFound(err) || (exists && (err != nil || out.Annotations["version"] != version)) {
		t.Fatalf("Get of %s: version %q, error %v; want %q, exists: %v", key, out.Annotations["version"], err, version, exists)
	}
}

// checkList lists at revision in pages of limit, 0: in one piece, and compares with the state that the model remembers.
func (m *model) checkList(t testing.TB, revision uint64, limit int64) {
	t.Helper()
	if revision == 0 {
		return
	}
	want, known := m.states[revision]
	for r := revision; !known && r > 0; r-- { // a revision inside a gap has the state of the one before it
		want, known = m.states[r]
	}
	got := map[string]string{}
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything,
		ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	opts.Predicate.Limit = limit
	for {
		list := &example.PodList{}
		err := m.store.GetList(t.Context(), "/pods/", opts, list)
		if revision < m.floor {
			if !apierrors.IsResourceExpired(err) {
				t.Fatalf("LIST at %d, below %d: %v, want 410 Expired", revision, m.floor, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("LIST at %d, from %d on: %v", revision, m.floor, err)
		}
		if list.ResourceVersion != fmt.Sprint(revision) {
			t.Fatalf("LIST at %d came back as %s", revision, list.ResourceVersion)
		}
		for i := range list.Items {
			got["/pods/ns/"+list.Items[i].Name] = list.Items[i].Annotations["version"]
		}
		if list.Continue == "" {
			break
		}
		if left := int64(len(want) - len(got)); list.RemainingItemCount == nil || *list.RemainingItemCount != left {
			t.Fatalf("LIST at %d: remaining %v, want %d", revision, list.RemainingItemCount, left)
		}
		opts.Predicate.Continue = list.Continue
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("LIST at %d (-want +got):\n%s", revision, diff)
	}
}

func TestRandomOperationsMatchModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		m := newModel(newTestStore(t, func(cfg *Config) { cfg.HistoryLimit = 1_000_000; cfg.InitialRevision = random.Uint64N(1_000) }))
		for range 400 {
			m.step(t, byte(random.UintN(256)), byte(random.UintN(256)))
		}
		for revision := m.floor; revision <= m.revision; revision += 1 + random.Uint64N(50) {
			m.checkList(t, revision, int64(random.UintN(4)))
		}
	}
}

// FuzzStore reads pairs of bytes as operations, and checks at the end that a watch saw exactly the changes.
func FuzzStore(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 3, 0})
	f.Add([]byte{4, 255, 5, 7, 6, 1, 7, 2, 8, 3})
	f.Add([]byte{0, 1, 0, 2, 8, 1, 7, 0, 8, 1, 3, 1, 8, 1})
	f.Fuzz(func(t *testing.T, operations []byte) {
		if len(operations) > 400 {
			return
		}
		store := newTestStore(t)
		m := newModel(store)
		w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(m.revision)})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		replay := newReplay(m.revision)
		for i := 0; i+1 < len(operations); i += 2 {
			m.step(t, operations[i], operations[i+1])
		}
		m.put("/pods/ns/last")
		if _, err := store.Apply(Change{Key: "/pods/ns/last", Object: pod("ns", "last", m.current["/pods/ns/last"])}); err != nil {
			t.Fatal(err)
		}
		for event := range w.ResultChan() {
			if expired, err := replay.take(event); err != nil {
				t.Fatal(err)
			} else if expired {
				return // the watch was passed by a Compact
			}
			if diff := cmp.Diff(m.stateAt(replay.revision), replay.state); diff != "" {
				t.Fatalf("the watch at %d (-want +got):\n%s", replay.revision, diff)
			}
			if replay.revision == m.revision {
				return
			}
		}
		t.Fatal("the watch ended early")
	})
}

func (m *model) stateAt(revision uint64) map[string]string { return m.states[revision] }
