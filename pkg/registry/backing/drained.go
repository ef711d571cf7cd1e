// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// drainedStore is what the watch cache reads. drain ends its watches when the
// cache has taken what they sent: a cache that is stopped with a hundred changes
// on their way waits for ever, as its reflector waits for room in the queue of a
// dispatcher that has ended (k8s.io/apiserver v0.37.2, Cacher.Stop).
type drainedStore struct {
	storage.Interface
	ending chan struct{}

	mu      sync.Mutex
	ended   bool
	watches sync.WaitGroup
}

func newDrainedStore(below storage.Interface) *drainedStore {
	return &drainedStore{Interface: below, ending: make(chan struct{})}
}

// drain may be called once. No watch can be opened after it.
func (d *drainedStore) drain() {
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	close(d.ending)
	d.watches.Wait()
}

// Watch implements storage.Interface.
func (d *drainedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return nil, storage.ErrStorageNotReady
	}
	d.watches.Add(1)
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	source, err := d.Interface.Watch(ctx, key, opts)
	if err != nil {
		cancel()
		d.watches.Done()
		return nil, err
	}
	w := &drainedWatch{ctx: ctx, cancel: cancel, source: source, result: make(chan watch.Event)}
	go func() {
		defer d.watches.Done()
		w.forward(d.ending)
	}()
	return w, nil
}

// drainedWatch hands over one event at a time: who takes the next one has done
// with the one before.
type drainedWatch struct {
	ctx    context.Context
	cancel context.CancelFunc
	source watch.Interface
	result chan watch.Event
}

// Stop implements watch.Interface.
func (w *drainedWatch) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *drainedWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *drainedWatch) forward(ending <-chan struct{}) {
	defer close(w.result)
	defer w.cancel()
	defer w.source.Stop()
	for {
		select {
		case <-ending:
			// The reflector ends quietly on this, and the cache is told nothing.
			expired := apierrors.NewResourceExpired("the server stops").Status()
			w.send(watch.Event{Type: watch.Error, Object: &expired})
			return
		default:
		}
		select {
		case event, open := <-w.source.ResultChan():
			if !open || !w.send(event) {
				return
			}
		case <-ending:
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *drainedWatch) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.ctx.Done():
		return false
	}
}
