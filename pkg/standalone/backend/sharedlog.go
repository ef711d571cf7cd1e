// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// idleLimit is how long an empty log without storage is kept. It is the age at
// which the log itself forgets changes (memory.Config.HistoryAge), so a client
// that comes back later would find nothing to resume from anyway.
const idleLimit = 5 * time.Minute

// logKey tells logs apart. A custom resource shares none with the resource of the
// same name that the server has itself, see Backend.CustomResources.
type logKey struct {
	resource schema.GroupResource
	custom   bool
}

// sharedLog is the log of one resource.
type sharedLog struct {
	logKey
	prefix string
	store  *memory.Store // in the form of its first user

	// Both are guarded by Backend.mu.
	users     int
	idleSince time.Time
}

// logLocked returns the log of a resource, and a Store over it in the given form.
func (b *Backend) logLocked(key logKey, prefix string, form memory.Form) (*sharedLog, *memory.Store, error) {
	if b.stopped {
		return nil, nil, fmt.Errorf("storing %s: %w", key.resource, errStopped)
	}
	if l, ok := b.logs[key]; ok {
		if l.prefix != prefix {
			return nil, nil, fmt.Errorf("storing %s: the prefix of its keys is %q, not %q", key.resource, l.prefix, prefix)
		}
		store, err := l.store.As(form)
		return l, store, err
	}
	b.dropIdleLocked()
	store, err := memory.New(memory.Config{
		GroupResource:   key.resource,
		ResourcePrefix:  prefix,
		NewFunc:         form.NewFunc,
		NewListFunc:     form.NewListFunc,
		Codec:           form.Codec,
		Transformer:     form.Transformer,
		InitialRevision: b.firstRevisionLocked(),
		Clock:           b.clock,
	})
	if err != nil {
		return nil, nil, err
	}
	l := &sharedLog{logKey: key, prefix: prefix, store: store}
	b.logs[key] = l
	return l, store, nil
}

// firstRevisionLocked is the revision at which a log begins: the time in
// milliseconds. What is stored is gone after a restart, and a client that knows
// a revision from before must not take up another history there: it finds that
// revision expired, as the new first one is larger unless there was more than
// one write per millisecond for the whole life of the process. Today it is
// about 1.8e12, a thousandth of the revisions of a view, which are the time in
// microseconds (MinViewRevision of pkg/proxy/body, 1e15), so that the two cannot be
// taken for each other.
//
// Logs that were dropped count too, so a resource that comes back, as that of a
// custom resource may, goes on upwards whatever the clock does.
func (b *Backend) firstRevisionLocked() uint64 {
	return max(uint64(max(b.clock.Now().UnixMilli(), 1)), b.highest+1)
}

// dropIdleLocked drops the logs that nobody has needed for a while, so a server
// that sees many custom resources come and go keeps none of those that went.
func (b *Backend) dropIdleLocked() {
	for key, l := range b.logs {
		if l.users > 0 || b.clock.Since(l.idleSince) < idleLimit {
			continue
		}
		if stats, err := l.store.Stats(context.Background()); err != nil || stats.ObjectCount > 0 {
			continue
		}
		b.highest = max(b.highest, l.store.Revision())
		l.store.Stop()
		delete(b.logs, key)
	}
}
