// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/grid-apiserver/grid-apiserver/internal/mutant"
)

// resultBuffer is how many events a watch may be ahead of its reader; etcd's storage has the same.
const resultBuffer = 100

const watchExpired = "The resourceVersion for the provided watch is too old."

// watcher is a watch: a cursor into the log and a goroutine that moves it. Only that goroutine touches the cursor and
// sends; the fields above it do not change once it runs.
type watcher struct {
	store      *Store
	key        string
	recursive  bool
	filter     storage.SelectionPredicate
	acceptAll  bool // filter is empty
	progress   bool // bookmarks were asked for
	stamp      bool // events carry the time of the change
	endInitial bool // a bookmark ends the initial events
	ctx        context.Context
	cancel     context.CancelFunc
	result     chan watch.Event

	initial      *snapshot // what to send first
	expired      bool      // the watch began below the window
	cursor       uint64
	epoch        uint64
	seenProgress uint64
}

var _ watch.Interface = (*watcher)(nil)

// Stop implements watch.Interface. It does not wait; the channel is closed soon after.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run() {
	defer w.store.running.Done()
	defer close(w.result)
	defer w.cancel()
	if w.ctx.Err() != nil {
		return
	}
	if w.initial != nil && !w.sendInitial() {
		return
	}
	utilflowcontrol.WatchInitialized(w.ctx)
	if w.expired {
		w.sendError(apierrors.NewResourceExpired(watchExpired))
		return
	}
	for w.step() {
	}
}

// step delivers what is at the cursor, or waits. It returns false when the watch is over.
func (w *watcher) step() bool {
	found := w.store.read(w.cursor, w.epoch)
	if found.expired {
		w.sendError(apierrors.NewResourceExpired(watchExpired))
		return false
	}
	if len(found.changes) > 0 {
		return w.sendChanges(found.changes)
	}
	if w.progress && found.progress != w.seenProgress {
		w.seenProgress = found.progress
		return w.sendBookmark(found.revision, false)
	}
	select {
	case <-found.changed:
		return true
	case <-w.ctx.Done():
		return false
	case <-w.store.stopping:
		return false
	}
}

func (w *watcher) sendChanges(changes []record) bool {
	for i := range changes {
		if mutant.DroppedEvent && i == 2 {
			continue
		}
		if w.ctx.Err() != nil { // changes that the filter drops do not get to the select in send
			return false
		}
		event, ok, err := w.event(&changes[i])
		if err != nil {
			w.sendError(err)
			return false
		}
		if ok && !w.send(event) {
			return false
		}
	}
	w.cursor += uint64(len(changes))
	return true
}

// sendInitial sends the present objects, and the bookmark that ends them if it was asked for.
func (w *watcher) sendInitial() bool {
	going := true
	visit := func(e *entry) bool {
		object, err := w.store.object(w.ctx, e)
		switch {
		case err != nil:
			w.sendError(err)
			going = false
		case w.matches(object):
			going = w.send(watch.Event{Type: watch.Added, Object: object})
		}
		going = going && w.ctx.Err() == nil
		return going
	}
	if w.recursive {
		w.initial.ascend(w.key, w.key, visit)
	} else if e, ok := w.initial.objects.Get(&entry{key: w.key}); ok {
		visit(e)
	}
	revision := w.initial.revision
	w.initial = nil // do not hold the old state for as long as the watch lasts
	return going && (!w.endInitial || w.sendBookmark(revision, true))
}

func (w *watcher) covers(key string) bool {
	if w.recursive {
		return strings.HasPrefix(key, w.key)
	}
	return key == w.key
}

func (w *watcher) matches(object runtime.Object) bool {
	if w.acceptAll {
		return true
	}
	matched, err := w.filter.Matches(object)
	return err == nil && matched
}

func (w *watcher) sendBookmark(revision uint64, endsInitial bool) bool {
	bookmark := w.store.newFunc()
	err := versioner.UpdateObject(bookmark, revision)
	if err == nil && endsInitial {
		err = storage.AnnotateInitialEventsEndBookmark(bookmark)
	}
	if err != nil {
		w.sendError(fmt.Errorf("making a bookmark for %s: %w", w.store.groupResource, err))
		return false
	}
	return w.send(watch.Event{Type: watch.Bookmark, Object: bookmark})
}

// sendError sends the last event of a watch. A canceled watch ends without one: err may say no more than that.
func (w *watcher) sendError(err error) {
	if w.ctx.Err() != nil {
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	object := status.Status()
	w.send(watch.Event{Type: watch.Error, Object: &object})
}

// send waits for the reader, and returns false when the watch is over.
func (w *watcher) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.ctx.Done():
		return false
	case <-w.store.stopping:
		return false
	}
}
