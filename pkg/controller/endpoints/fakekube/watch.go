// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// store writes and returns what is then stored. The caller has the lock.
func (c *Cluster) store(name string, kind watch.EventType, object Object) Object {
	c.revision++
	object.SetResourceVersion(strconv.FormatInt(c.revision, 10))
	r := c.resources[name]
	if kind == watch.Deleted {
		delete(r.stored, keyOf(object))
	} else {
		r.stored[keyOf(object)] = object
	}
	r.hidden = append(r.hidden, change{revision: c.revision, kind: kind, object: object})
	if !r.held {
		r.show(len(r.hidden))
	}
	return object
}

// show makes the oldest hidden changes visible.
func (r *resource) show(count int) {
	for _, next := range r.hidden[:count] {
		if next.kind == watch.Deleted {
			delete(r.visible, keyOf(next.object))
		} else {
			r.visible[keyOf(next.object)] = next.object
		}
		r.shown = append(r.shown, next)
		for _, w := range r.watchers {
			w.send(next)
		}
	}
	r.hidden = r.hidden[count:]
}

// Hold has the changes of a resource stay invisible.
func (c *Cluster) Hold(resource string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.resources[resource].held = true
}

// Show makes at most count of the invisible changes of a resource visible.
func (c *Cluster) Show(resource string, count int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	r := c.resources[resource]
	r.show(min(count, len(r.hidden)))
}

// Release makes all changes of a resource visible, and those to come.
func (c *Cluster) Release(resource string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	r := c.resources[resource]
	r.held = false
	r.show(len(r.hidden))
}

// react answers a controller's request.
func (c *Cluster) react(action clienttesting.Action) (runtime.Object, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	name := action.GetResource().Resource
	verb := action.GetVerb()
	r := c.resources[name]
	if r == nil {
		return nil, fmt.Errorf("no such resource: %s", name)
	}
	if verb == "list" {
		return r.list(name)
	}
	line := verb + " " + name
	if c.fail != nil {
		if err := c.fail(verb, name); err != nil {
			c.writes = append(c.writes, line+": "+err.Error())
			return nil, err
		}
	}
	var object Object
	var err error
	switch request := action.(type) {
	case clienttesting.CreateAction: // an update is one of these as well
		object = request.GetObject().DeepCopyObject().(Object)
		object.SetNamespace(action.GetNamespace())
		if verb == "update" {
			object, err = c.update(name, object)
		} else {
			object, err = c.create(name, object)
		}
		if err == nil {
			line += " " + keyOf(object)
			object = object.DeepCopyObject().(Object)
		}
	case clienttesting.DeleteAction:
		key := action.GetNamespace() + "/" + request.GetName()
		line += " " + key
		err = c.delete(name, key)
	default:
		err = fmt.Errorf("no such verb: %s", verb)
	}
	if err != nil {
		c.writes = append(c.writes, line+": "+err.Error())
		return nil, err
	}
	c.writes = append(c.writes, line)
	return object, nil
}

func (r *resource) list(name string) (runtime.Object, error) {
	keys := sortedKeys(r.visible)
	list := metav1.ListMeta{ResourceVersion: strconv.FormatInt(r.visibleRevision(), 10)}
	switch name {
	case "services":
		return &corev1.ServiceList{ListMeta: list, Items: items[corev1.Service](r, keys)}, nil
	case "pods":
		return &corev1.PodList{ListMeta: list, Items: items[corev1.Pod](r, keys)}, nil
	case "nodes":
		return &corev1.NodeList{ListMeta: list, Items: items[corev1.Node](r, keys)}, nil
	case "endpoints":
		return &corev1.EndpointsList{ListMeta: list, Items: items[corev1.Endpoints](r, keys)}, nil
	case "endpointslices":
		return &discoveryv1.EndpointSliceList{ListMeta: list, Items: items[discoveryv1.EndpointSlice](r, keys)}, nil
	}
	return nil, fmt.Errorf("no such list: %s", name)
}

func sortedKeys[T any](objects map[string]T) []string {
	return slices.Sorted(maps.Keys(objects))
}

func items[T any](r *resource, keys []string) []T {
	out := make([]T, 0, len(keys))
	for _, key := range keys {
		copied := r.visible[key].DeepCopyObject()
		out = append(out, *any(copied).(*T))
	}
	return out
}

func (r *resource) visibleRevision() int64 {
	if len(r.shown) == 0 {
		return 0
	}
	return r.shown[len(r.shown)-1].revision
}

// watch sends what has become visible since the list that the client names.
func (c *Cluster) watch(action clienttesting.Action) (watch.Interface, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	r := c.resources[action.GetResource().Resource]
	request, ok := action.(clienttesting.WatchActionImpl)
	if r == nil || !ok {
		return nil, fmt.Errorf("no such watch: %v", action)
	}
	since, err := strconv.ParseInt(request.ListOptions.ResourceVersion, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("watch from no revision: %w", err)
	}
	w := &watcher{events: make(chan watch.Event), wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	for _, next := range r.shown {
		if next.revision > since {
			w.send(next)
		}
	}
	r.watchers = append(r.watchers, w)
	go w.run()
	return w, nil
}

// watcher never makes a writer wait.
type watcher struct {
	lock    sync.Mutex
	queue   []watch.Event
	events  chan watch.Event
	wake    chan struct{}
	stopped chan struct{}
	stop    sync.Once
}

func (w *watcher) send(next change) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.queue = append(w.queue, watch.Event{Type: next.kind, Object: next.object.DeepCopyObject()})
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) run() {
	defer close(w.events)
	for {
		w.lock.Lock()
		batch := w.queue
		w.queue = nil
		w.lock.Unlock()
		for _, event := range batch {
			select {
			case w.events <- event:
			case <-w.stopped:
				return
			}
		}
		select {
		case <-w.wake:
		case <-w.stopped:
			return
		}
	}
}

func (w *watcher) Stop() {
	w.stop.Do(func() { close(w.stopped) })
}

func (w *watcher) ResultChan() <-chan watch.Event {
	return w.events
}
