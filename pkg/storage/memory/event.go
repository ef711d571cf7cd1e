// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// event translates a change into what this watch sees of it; ok is false if that is nothing. An object that leaves the
// selection is DELETED, with its last content inside the selection and the revision of the change; one that enters it is
// ADDED.
func (w *watcher) event(change *record) (event watch.Event, ok bool, err error) {
	if !w.covers(change.entry.key) {
		return watch.Event{}, false, nil
	}
	object, err := w.store.object(w.ctx, change.entry)
	if err != nil {
		if change.entry.deleted {
			err = corruptDeletion(err)
		}
		return watch.Event{}, false, err
	}
	is := !change.entry.deleted && w.matches(object)
	was := change.previous != nil
	last := object // a deletion carries the content that it ends
	if was && !change.entry.deleted && !w.acceptAll {
		if last, err = w.store.object(w.ctx, change.previous); err != nil {
			return watch.Event{}, false, err
		}
	}
	was = was && w.matches(last)
	switch {
	case was && is:
		event.Type = watch.Modified
	case is:
		event.Type = watch.Added
	case was:
		event.Type = watch.Deleted
		if !change.entry.deleted {
			if object, err = w.store.restamp(last, change.entry.revision); err != nil {
				return watch.Event{}, false, err
			}
		}
	default:
		return watch.Event{}, false, nil
	}
	if w.stamp {
		object = &timedObject{Object: object, recorded: change.at}
	}
	event.Object = object
	return event, true, nil
}

// timedObject carries the time of the change to the stock cacher, which takes the object out of it and measures how long
// the event took.
type timedObject struct {
	runtime.Object
	recorded time.Time
}

var (
	_ storage.WatchEventWithRecordTime = (*timedObject)(nil)
	_ metav1.ObjectMetaAccessor        = (*timedObject)(nil)
)

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which reflectors read the resourceVersion.
func (t *timedObject) GetObjectMeta() metav1.Object {
	accessor, err := meta.Accessor(t.Object)
	if err != nil {
		return nil
	}
	return accessor
}

// DeepCopyObject implements runtime.Object.
func (t *timedObject) DeepCopyObject() runtime.Object {
	return &timedObject{Object: t.Object.DeepCopyObject(), recorded: t.recorded}
}

// RecordTime implements storage.WatchEventWithRecordTime.
func (t *timedObject) RecordTime() time.Time { return t.recorded }

// Unwrap implements storage.WatchEventWithRecordTime.
func (t *timedObject) Unwrap() runtime.Object { return t.Object }
