// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// clientDeadline is how long a client waits for events that are due.
const clientDeadline = 30 * time.Second

// clientKinds are the habits of clients. Each number is one in how many steps
// something happens; 0 is never.
var clientKinds = []clientKind{
	{name: "attentive", catchUp: 2},
	{name: "restless", catchUp: 4, read: 3, hangUp: 3},
	{name: "with WatchList", watchList: true, catchUp: 3, read: 4, hangUp: 12, forget: 24},
	{name: "slow", read: 16, hangUp: 64},
}

type clientKind struct {
	name string
	// watchList: it begins with a watch that sends the initial state, not with a
	// LIST.
	watchList bool
	// catchUp: it reads all there is. read: it reads a few events.
	// hangUp: it ends its watch, and goes on from where it was later.
	// forget: it ends its watch and begins anew.
	catchUp, read, hangUp, forget int
}

// client keeps its own copy of a resource by the means that the API has for
// that, and compares all that it gets with the changelog.
type client struct {
	clientKind
	log   *changelog
	watch watch.Interface // nil: none is open

	// objects is nil if the client knows nothing. They are as of revision last,
	// after which changes[next] follows, and should be want.
	objects map[types.NamespacedName]object
	want    state
	last    uint64
	next    int
	// epoch is that of the objects, opened that in which the watch was opened.
	epoch, opened int
	// initial says that the initial events have not ended.
	initial bool
}

// step lets the client do something, or nothing.
func (c *client) step(g generator) error {
	oneIn := func(n int) bool { return n > 0 && g.oneIn(n) }
	catchUp, read, hangUp, forget, count := oneIn(c.catchUp), oneIn(c.read), oneIn(c.hangUp), oneIn(c.forget), 1+g.IntN(4)
	if catchUp {
		if err := c.readAll(); err != nil {
			return err
		}
	}
	if read {
		if err := c.readSome(count); err != nil {
			return err
		}
	}
	if hangUp || forget {
		c.stop()
	}
	if forget {
		c.objects = nil
	}
	return nil
}

// connect opens a watch if none is open: it goes on from the last revision, or
// begins with a LIST or a WatchList.
func (c *client) connect() error {
	if c.watch != nil {
		return nil
	}
	opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true, ProgressNotify: true}
	opts.Predicate.AllowWatchBookmarks = true
	switch {
	case c.objects != nil && !c.initial:
		opts.ResourceVersion = strconv.FormatUint(c.last, 10)
	case c.watchList:
		opts.SendInitialEvents, opts.ResourceVersionMatch = ptr.To(true), metav1.ResourceVersionMatchNotOlderThan
		c.initial = true
		c.begin()
	default:
		if err := c.list(); err != nil {
			return err
		}
		opts.ResourceVersion = strconv.FormatUint(c.last, 10)
	}
	w, err := c.log.store.Watch(context.Background(), "/"+c.log.resource+"/", opts)
	if err != nil {
		return fmt.Errorf("watch from revision %q of a store at %d: %w", opts.ResourceVersion, c.log.revision, err)
	}
	c.watch, c.opened = w, c.log.epoch
	return nil
}

func (c *client) list() error {
	into := c.log.newList()
	if err := c.log.store.GetList(context.Background(), "/"+c.log.resource+"/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, into); err != nil {
		return err
	}
	c.begin()
	err := eachItem(into, func(obj object) { c.objects[keyOf(obj)] = obj })
	return errors.Join(err, c.compare("LIST"))
}

// begin has the client know nothing of the present revision.
func (c *client) begin() {
	c.objects = map[types.NamespacedName]object{}
	c.want, c.epoch, c.last, c.next = c.log.last(), c.log.epoch, c.log.revision, len(c.log.changes)
}

// readAll reads until the watch says that nothing is left, and compares the
// client's copy with a LIST of that revision.
func (c *client) readAll() error {
	timeout := time.After(clientDeadline)
	for asked := false; ; {
		if c.watch == nil {
			asked = false // it begins, or has expired
		}
		if err := c.connect(); err != nil {
			return err
		}
		if !c.initial && c.epoch == c.log.epoch && c.last == c.log.revision {
			return c.compareWithList()
		}
		if !asked {
			if err := c.log.store.RequestWatchProgress(context.Background()); err != nil {
				return err
			}
			asked = true
		}
		if err := c.receive(timeout); err != nil {
			return err
		}
	}
}

// readSome reads that many changes, or as many as there are.
func (c *client) readSome(count int) error {
	if err := c.connect(); err != nil {
		return err
	}
	// A bookmark shows at once that an event is missing.
	if err := c.log.store.RequestWatchProgress(context.Background()); err != nil {
		return err
	}
	timeout := time.After(clientDeadline)
	for end := min(c.next+count, len(c.log.changes)); c.watch != nil && c.next < end; {
		if err := c.receive(timeout); err != nil {
			return err
		}
	}
	if c.watch == nil || c.initial || c.epoch != c.log.epoch {
		return nil
	}
	return c.compareWithList()
}

// compareWithList compares the client's copy with a LIST of the same revision,
// unless the store does not keep that any more.
func (c *client) compareWithList() error {
	now, err := c.log.listAt(c.last)
	if apierrors.IsResourceExpired(err) && c.hasExpired() {
		return nil
	}
	if err != nil {
		return err
	}
	return c.compareWith(now, "LIST")
}

// hasExpired reports whether the store may have forgotten what follows the
// client's revision.
func (c *client) hasExpired() bool {
	return c.epoch != c.log.epoch || len(c.log.changes)-c.next > c.log.limit
}

// receive takes one event.
func (c *client) receive(timeout <-chan time.Time) error {
	select {
	case event, ok := <-c.watch.ResultChan():
		if !ok {
			return errors.New("the watch ended without an error")
		}
		return c.take(event)
	case <-timeout:
		return fmt.Errorf("nothing comes after revision %d, the store is at %d", c.last, c.log.revision)
	}
}

func (c *client) take(event watch.Event) error {
	if event.Type == watch.Error {
		return c.expire(event.Object)
	}
	obj, ok := event.Object.(object)
	if !ok {
		return fmt.Errorf("%s of %T", event.Type, event.Object)
	}
	if c.epoch != c.opened {
		return fmt.Errorf("a watch goes on from revision %d, which was another's", c.last)
	}
	got := change{kind: event.Type, name: keyOf(obj), after: versionOf(obj)}
	switch {
	case event.Type == watch.Bookmark:
		return c.bookmark(obj, got.after.revision)
	case c.initial:
		if got.kind != watch.Added || got.after.revision > c.last || c.objects[got.name] != nil {
			return fmt.Errorf("%v among the initial events of revision %d", got, c.last)
		}
		c.objects[got.name] = obj
		return nil
	}
	want, ok := c.following()
	if !ok {
		return fmt.Errorf("%v after the last change", got)
	}
	if got.kind != want.kind || got.name != want.name || got.after != want.after {
		return fmt.Errorf("%v comes after revision %d, want %v\n%s", got, c.last, want, describeContents(got.after.content, want.after.content))
	}
	if got.kind == watch.Deleted {
		delete(c.objects, got.name)
	} else {
		c.objects[got.name] = obj
	}
	c.last, c.want = got.after.revision, want.state
	c.next++
	return nil
}

// following returns the change after what the client has.
func (c *client) following() (change, bool) {
	if c.next == len(c.log.changes) || c.log.changes[c.next].epoch != c.epoch {
		return change{}, false
	}
	return c.log.changes[c.next], true
}

// bookmark says that everything up to a revision was delivered.
func (c *client) bookmark(obj object, revision uint64) error {
	if ends := obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"; ends != c.initial || ends && revision != c.last {
		return fmt.Errorf("bookmark at revision %d, annotations %v, the last revision is %d", revision, obj.GetAnnotations(), c.last)
	}
	c.initial = false
	if following, ok := c.following(); revision < c.last || ok && following.after.revision <= revision {
		return fmt.Errorf("bookmark at revision %d after %d, before %v", revision, c.last, following)
	}
	c.last = revision
	return c.compare("bookmark")
}

// expire takes the error that ends a watch. It must be 410, and the store must
// not have what the client has missed.
func (c *client) expire(status runtime.Object) error {
	if err := apierrors.FromObject(status); !apierrors.IsResourceExpired(err) || !c.hasExpired() {
		return fmt.Errorf("error at revision %d, %d changes behind, %d are kept: %w", c.last, len(c.log.changes)-c.next, c.log.limit, err)
	}
	c.stop()
	c.objects, c.initial = nil, false
	return nil
}

func (c *client) compare(what string) error { return c.compareWith(c.want, what) }

// compareWith compares the objects that the client holds, as they are now, with
// a state.
func (c *client) compareWith(want state, what string) error {
	for name, obj := range c.objects {
		if got := versionOf(obj); got != want[name] {
			return fmt.Errorf("%s at revision %d: the client has %s@%d, want @%d\n%s", what, c.last, name, got.revision, want[name].revision, describeContents(got.content, want[name].content))
		}
	}
	if len(c.objects) != len(want) {
		return fmt.Errorf("%s at revision %d: the client has %v, want %v", what, c.last, sortedNames(c.objects), sortedNames(want))
	}
	return nil
}

func (c *client) stop() {
	if c.watch != nil {
		c.watch.Stop()
		c.watch = nil
	}
}
