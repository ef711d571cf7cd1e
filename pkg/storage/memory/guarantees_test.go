// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/utils/ptr"
)

// The guarantees that etcd names for its watches, and what they mean here. TestWatchGuarantees and
// TestWatchGuaranteesUnderCacher hold every session of every observer against the log of all writes.
//
//   - Ordered, unique, reliable: a session shows the events of its selection after its start, each once, by revision,
//     with nothing left out before the last one it shows; or it ends with 410 Expired, in a Status, and only if what
//     comes next was forgotten.
//   - Atomic: what one Apply writes appears at once. No LIST, no initial state and no bookmark lies between two changes of
//     it, and who has seen one of its events sees the others without another write. Each change has a revision of its own
//     all the same, so a client may resume in the middle. The stock cacher, as over etcd, takes changes one by one: under
//     it, a LIST can show a part.
//   - Resumable: a session that begins with the revision of an event, of a bookmark, or of a LIST goes on from there.
//   - Bookmarkable: who sees a bookmark with revision R has seen all events up to R.

const (
	guaranteeChanges = 1_200 // of each writer, at least
	guaranteeWindow  = 300   // changes that the store keeps
	guaranteeLag     = 150   // changes that writers may be ahead of the observer who paces them
	guaranteeStall   = 900   // changes that the slowest observer lets pass: more than the window and all buffers
)

// arena is a store with writers that write concurrently, and observers.
type arena struct {
	store storage.Interface
	below *Store
	log   changelog
	// cached: store is the stock cacher over below.
	cached bool
	// floor is the smallest revision from which a watch may not expire.
	floor func() uint64

	mu      sync.Mutex
	moved   *sync.Cond // written or paced changed
	written uint64
	paced   uint64    // what the observer who paces the writers has seen
	last    []version // the last changes of all, some for each selection, before they are applied
}

func newArena(store storage.Interface, below *Store, floor func() uint64) *arena {
	a := &arena{store: store, below: below, floor: floor, written: below.Revision(), paced: below.Revision(), cached: store != storage.Interface(below)}
	a.moved = sync.NewCond(&a.mu)
	return a
}

// wrote logs changes, and holds the writer back while it is too far ahead.
func (a *arena) wrote(changes ...version) {
	a.log.add(changes...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written = max(a.written, changes[len(changes)-1].revision)
	a.moved.Broadcast()
	for a.written > a.paced && a.written-a.paced > guaranteeLag {
		a.moved.Wait()
	}
}

func (a *arena) pace(revision uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paced = max(a.paced, revision)
	a.moved.Broadcast()
}

// letPass waits until count changes were written, or all.
func (a *arena) letPass(count uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for target := a.written + count; a.written < target && a.last == nil; {
		a.moved.Wait()
	}
}

// finish makes the last changes, which are one batch. Observers know them before, so none misses its end.
func (a *arena) finish() error {
	var batch []version
	for _, namespace := range []string{"a", "b"} {
		for name := range 5 {
			key := fmt.Sprintf("/pods/%s/p%d", namespace, name)
			batch = append(batch, version{key: key, content: "last", in: "no"}, version{key: key, content: "last", in: "yes"})
		}
	}
	last := slices.Clone(batch)
	for i := range last {
		last[i].revision = a.below.Revision() + 1 + uint64(i)
	}
	a.mu.Lock()
	a.last = last
	a.moved.Broadcast()
	a.mu.Unlock()
	a.pace(math.MaxUint64)
	if err := a.apply(batch); err != nil {
		return err
	}
	if got, want := batch[len(batch)-1].revision, last[len(last)-1].revision; got != want {
		return fmt.Errorf("a batch of %d changes ends at revision %d, want %d", len(batch), got, want)
	}
	return nil
}

// over tells whether the last changes are about to be made.
func (a *arena) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last != nil
}

// sawAll tells whether who has seen revision has seen all that there is to see of s.
func (a *arena) sawAll(s *selection, revision uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, change := range a.last {
		if s.has(change) && change.revision > revision {
			return false
		}
	}
	return a.last != nil
}

func arenaKey(random *rand.Rand) string {
	return fmt.Sprintf("/pods/%s/p%d", []string{"a", "b"}[random.IntN(2)], random.IntN(5))
}

// write creates, updates and deletes single objects.
func (a *arena) write(ctx context.Context, random *rand.Rand, writer int) error {
	for i := range guaranteeChanges {
		v := version{key: arenaKey(random), content: fmt.Sprintf("%d.%d", writer, i), in: []string{"yes", "no"}[random.IntN(2)]}
		out := &example.Pod{}
		var err error
		switch random.IntN(4) {
		case 0:
			err = a.store.Create(ctx, v.key, v.object(), out, 0)
		case 1:
			err = a.store.Delete(ctx, v.key, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
			v.gone = true
		default:
			err = a.store.GuaranteedUpdate(ctx, v.key, out, random.IntN(2) == 0, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
				return v.object(), nil
			}), nil)
		}
		if storage.IsExist(err) || storage.IsNotFound(err) {
			continue
		}
		if err == nil {
			v.revision, err = versioner.ObjectResourceVersion(out)
		}
		if err != nil {
			return err
		}
		a.wrote(v)
	}
	return nil
}

// writeBatches applies several changes at once.
func (a *arena) writeBatches(random *rand.Rand, writer int) error {
	for i := 0; i < guaranteeChanges; {
		var batch []version
		for range 1 + random.IntN(5) {
			v := version{key: arenaKey(random), content: fmt.Sprintf("%d.%d", writer, i), in: []string{"yes", "no"}[random.IntN(2)]}
			batch = append(batch, v)
			if i++; random.IntN(4) == 0 { // it is there now, so deleting it takes a revision
				batch = append(batch, version{key: v.key, gone: true})
			}
		}
		if err := a.apply(batch); err != nil {
			return err
		}
	}
	return nil
}

func (a *arena) apply(batch []version) error {
	changes := make([]Change, len(batch))
	for i, v := range batch {
		changes[i].Key = v.key
		if !v.gone {
			changes[i].Object = v.object()
		}
	}
	last, err := a.below.Apply(changes...)
	if err != nil {
		return err
	}
	for i := range batch {
		batch[i].revision = last - uint64(len(batch)-1-i)
	}
	a.wrote(batch...)
	return nil
}

// compact moves the window, and asks for bookmarks, until everything is written.
func (a *arena) compact(ctx context.Context, random *rand.Rand, keep uint64) {
	for !a.over() {
		a.letPass(random.Uint64N(60))
		if revision := a.below.Revision(); revision > keep {
			a.below.Compact(revision - random.Uint64N(keep))
		}
		_ = a.below.RequestWatchProgress(ctx)
	}
}

// refused tells whether the cacher is behind the store, or fills itself anew.
func (a *arena) refused(err error) bool {
	return a.cached && (apierrors.IsResourceExpired(err) || apierrors.IsTooManyRequests(err) || storage.IsTooLargeResourceVersion(err))
}

// lists reads the whole until everything is written.
func (a *arena) lists(ctx context.Context, random *rand.Rand, s selection) ([]*session, error) {
	var read []*session
	for !a.over() {
		l, err := a.list(ctx, s)
		switch {
		case err == nil:
			read = append(read, l)
		case !a.refused(err):
			return nil, err
		}
		a.letPass(random.Uint64N(40))
	}
	return read, nil
}

func (a *arena) list(ctx context.Context, s selection) (*session, error) {
	list := &example.PodList{}
	if err := a.store.GetList(ctx, s.prefix, s.options(""), list); err != nil {
		return nil, err
	}
	revision, err := versioner.ParseResourceVersion(list.ResourceVersion)
	if err != nil {
		return nil, err
	}
	read := &session{selection: s, from: revision, hasInitial: true, last: revision, initial: []string{}}
	for i := range list.Items {
		v, err := versionOf(&list.Items[i])
		if err != nil {
			return nil, err
		}
		read.initial = append(read.initial, v.event(watch.Added))
	}
	return read, nil
}

// session is what one watch, or one LIST, has shown.
type session struct {
	selection
	from       uint64 // the watch shows what comes after it
	hasInitial bool
	initial    []string // the state at from
	events     []string
	bookmarks  map[int]uint64 // by how many events came before
	last       uint64         // the revision that was seen last
	expired    bool
	floor      uint64 // when it expired
}

// observer watches, breaks off, and resumes.
type observer struct {
	*arena
	selection
	random   *rand.Rand
	progress bool // asks for bookmarks
	pacing   bool // the writers wait for it
	stall    uint64
	sessions []*session
}

func (o *observer) run(ctx context.Context) error {
	from, known := o.below.Revision(), true
	if o.pacing {
		o.pace(from) // the writers may have begun
	}
	for !o.sawAll(&o.selection, from) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("observer of %s at %d: %w", o.name, from, err)
		}
		var err error
		var s *session
		switch {
		case known:
			s = &session{selection: o.selection, from: from, last: from, bookmarks: map[int]uint64{}}
			err = o.watch(ctx, s, o.options(fmt.Sprint(from)))
		case o.random.IntN(2) == 0:
			if s, err = o.list(ctx, o.selection); o.refused(err) {
				goruntime.Gosched()
				continue
			}
		default:
			s = &session{selection: o.selection, hasInitial: true, initial: []string{}, bookmarks: map[int]uint64{}}
			opts := o.options("")
			opts.SendInitialEvents, opts.ResourceVersionMatch, opts.Predicate.AllowWatchBookmarks = ptr.To(true), metav1.ResourceVersionMatchNotOlderThan, true
			err = o.watch(ctx, s, opts)
		}
		if err != nil {
			return fmt.Errorf("observer of %s from %d: %w", o.name, from, err)
		}
		o.sessions = append(o.sessions, s)
		from, known = s.last, !s.expired && s.last != 0
		if o.pacing {
			o.pace(from)
		}
	}
	return nil
}

func (o *observer) watch(ctx context.Context, s *session, opts storage.ListOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts.ProgressNotify = o.progress
	w, err := o.store.Watch(ctx, o.prefix, opts)
	if o.refused(err) {
		o.end(s, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	quit := 1 + o.random.IntN(400)
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			err := apierrors.FromObject(event.Object)
			if _, ok := event.Object.(*metav1.Status); !ok || !apierrors.IsResourceExpired(err) && !o.refused(err) {
				return fmt.Errorf("ERROR with %T: %w", event.Object, err)
			}
			o.end(s, err)
			return nil
		}
		if err := s.take(event); err != nil {
			return err
		}
		if o.pacing {
			o.pace(s.last)
		}
		if quit--; quit <= 0 && s.last != 0 || o.sawAll(&s.selection, s.last) {
			return nil
		}
		if o.stall > 0 && o.random.IntN(50) == 0 {
			o.letPass(o.stall)
		}
	}
	return nil
}

// end notes that the store, or the cacher, ended a session.
func (o *observer) end(s *session, err error) {
	s.expired, s.floor = apierrors.IsResourceExpired(err), o.floor()
	goruntime.Gosched()
}

// take notes an event. What can be checked at once is.
func (s *session) take(event watch.Event) error {
	if shared, ok := event.Object.(runtime.CacheableObject); ok { // the cacher encodes it once for all
		event.Object = shared.GetObject()
	}
	object, ok := event.Object.(*example.Pod)
	if !ok {
		return fmt.Errorf("%s with %T", event.Type, event.Object)
	}
	v, err := versionOf(object)
	if err != nil {
		return err
	}
	filling := s.hasInitial && s.from == 0
	switch {
	case event.Type == watch.Bookmark && filling:
		accessor, _ := meta.Accessor(object)
		if accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			return nil // one of the others, which say nothing before that
		}
		s.from, s.last = v.revision, v.revision
	case event.Type == watch.Bookmark:
		s.bookmarks[len(s.events)] = v.revision
		s.last = max(s.last, v.revision)
	case filling:
		s.initial = append(s.initial, v.event(event.Type))
	default:
		s.events = append(s.events, v.event(event.Type))
		s.last = max(s.last, v.revision)
	}
	return nil
}

// check holds a session against the log.
func (s *session) check(t *testing.T, log *changelog, line timeline, whole bool) {
	t.Helper()
	// The cacher answers 410 only when a watch begins, so under it this compares with the start.
	if s.expired && s.floor <= s.last {
		t.Errorf("%s from %d: expired after %d, though all changes after %d are known", s.name, s.from, s.last, s.floor)
	}
	if s.last == 0 {
		return // ended before it had begun
	}
	if s.hasInitial {
		if diff := gocmp.Diff(log.state(s.selection, s.from), s.initial); diff != "" {
			t.Errorf("%s at %d (-want +got):\n%s", s.name, s.from, diff)
		}
		if whole && log.insideBatch(s.from) {
			t.Errorf("%s shows a part of a batch, at %d", s.name, s.from)
		}
	}
	want := line.between(s.from, s.last)
	if len(want)+len(s.events) > 0 {
		if diff := gocmp.Diff(want, s.events); diff != "" {
			t.Errorf("%s after %d, up to %d (-want +got):\n%s", s.name, s.from, s.last, diff)
		}
	}
	for before, revision := range s.bookmarks {
		if want := len(line.between(s.from, revision)); before != want {
			t.Errorf("%s after %d: %d events before the bookmark at %d, want %d", s.name, s.from, before, revision, want)
		}
		if whole && log.insideBatch(revision) {
			t.Errorf("%s: a bookmark lies in a batch, at %d", s.name, revision)
		}
	}
}

func (a *arena) run(t *testing.T, random *rand.Rand, keep uint64) (observers []*observer, lists []*session) {
	t.Helper()
	observers = []*observer{
		{selection: selectAll("everything", "/pods/"), pacing: true},
		{selection: selectAll("everything, with bookmarks", "/pods/"), progress: true},
		{selection: selectAll("everything, slowly", "/pods/"), stall: guaranteeStall},
		{selection: selectAll("a namespace", "/pods/a/"), progress: true},
		{selection: selectLabel("a label", "/pods/", "yes"), progress: true},
		{selection: selectLabel("a label in a namespace, slowly", "/pods/b/", "yes"), stall: 60},
		{selection: selectName("a name", "/pods/", "p1")},
		{selection: selectKey("/pods/a/p2"), progress: true},
	}
	start := a.below.Revision()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var background, writers, watchers sync.WaitGroup
	failing := func(err error) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			cancel() // the others would wait for what does not come
			a.pace(math.MaxUint64)
		}
	}
	for i, o := range observers {
		o.arena, o.random = a, split(random)
		watchers.Go(func() { failing(observers[i].run(ctx)) })
	}
	compactor, lister := split(random), split(random)
	background.Go(func() { a.compact(ctx, compactor, keep) })
	background.Go(func() {
		var err error
		lists, err = a.lists(ctx, lister, selectAll("LIST", "/pods/"))
		failing(err)
	})
	for writer := range 2 {
		random := split(random)
		writers.Go(func() { failing(a.write(ctx, random, writer)) })
	}
	batches := split(random)
	writers.Go(func() { failing(a.writeBatches(batches, 2)) })
	writers.Wait()
	failing(a.finish())
	background.Wait()
	watchers.Wait()
	a.log.seal(t, start)
	return observers, lists
}

// TestWatchGuarantees lets observers of all kinds watch a store that several writers write to and whose window moves.
func TestWatchGuarantees(t *testing.T) {
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		atRandom(t, 1, func(t *testing.T, random *rand.Rand) {
			store := newStore(t, func(cfg *Config) { cfg.HistoryLimit = guaranteeWindow })
			a := newArena(store, store, func() uint64 { return uint64(store.CompactRevision()) })
			observers, lists := a.run(t, random, 2*guaranteeWindow)
			expired := a.check(t, observers, lists, true)
			if expired == 0 {
				t.Error("no session expired: that was not tested")
			}
		})
	})
}

// fills notes at which revision the cacher last filled itself: it knows nothing of before.
type fills struct {
	storage.Interface
	revision func() uint64
	floor    atomic.Uint64
}

func (f *fills) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := f.Interface.Watch(ctx, key, opts)
	if ptr.Deref(opts.SendInitialEvents, false) {
		f.floor.Store(f.revision())
	}
	return w, err
}

// TestWatchGuaranteesUnderCacher is TestWatchGuarantees for what clients get.
func TestWatchGuaranteesUnderCacher(t *testing.T) {
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		atRandom(t, 1, func(t *testing.T, random *rand.Rand) {
			store := newStore(t)
			counted := &fills{revision: store.Revision}
			cached := newCachedStore(t, store, func(cfg *cacher.Config) {
				counted.Interface = cfg.Storage
				cfg.Storage = counted
			})
			a := newArena(cached, store, counted.floor.Load)
			observers, lists := a.run(t, random, 4*guaranteeLag)
			a.check(t, observers, lists, false)
		})
	})
}

// check checks all sessions and returns how many have expired.
func (a *arena) check(t *testing.T, observers []*observer, lists []*session, whole bool) (expired int) {
	t.Helper()
	resumed := 0
	for _, o := range observers {
		line := a.log.timeline(o.selection)
		for _, s := range o.sessions {
			s.check(t, &a.log, line, whole)
			if s.expired {
				expired++
			}
			if len(s.events) > 0 {
				resumed++
			}
		}
	}
	for _, l := range lists {
		l.check(t, &a.log, timeline{}, whole)
	}
	t.Logf("%d changes, %d sessions with events, %d expired, %d LISTs", len(a.log.changes), resumed, expired, len(lists))
	if resumed <= len(observers) || len(lists) == 0 {
		t.Error("nobody resumed, or nobody listed: that was not tested")
	}
	return expired
}
