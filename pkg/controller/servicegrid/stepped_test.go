// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/generated/informers/externalversions"
)

// stepped is a controller on a fakeAPI that does one thing at a time, when it is told to: deliver an event to one of its
// informers, or sync one key. So a test can let the informers lag, and replay what went wrong.
type stepped struct {
	api        *fakeAPI
	controller *Controller
	queue      *stepQueue
	recorder   *eventList
	indexers   map[string]cache.Indexer
	handlers   map[string]cache.ResourceEventHandler
	// delivered is how much of the API's history an informer knows.
	delivered map[string]int
}

// newStepped starts a controller, whose informers know the first part of the history and then lag.
func newStepped(api *fakeAPI, known map[string]int) (*stepped, error) {
	client, gridClient := api.clients()
	services := informers.NewSharedInformerFactory(client, 0).Core().V1().Services()
	grids := externalversions.NewSharedInformerFactory(gridClient, 0).Superedge().V1().ServiceGrids()
	recorder := &eventList{}
	c, err := New(client.CoreV1(), gridClient.SuperedgeV1(), recorder, grids, services)
	if err != nil {
		return nil, err
	}
	c.queue.ShutDown()
	s := &stepped{
		api: api, controller: c, queue: &stepQueue{}, recorder: recorder, delivered: map[string]int{},
		indexers: map[string]cache.Indexer{servicesResource: services.Informer().GetIndexer(), gridsResource: grids.Informer().GetIndexer()},
		handlers: map[string]cache.ResourceEventHandler{servicesResource: c.serviceHandler(), gridsResource: c.gridHandler()},
	}
	c.queue, c.clock = s.queue, testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	for _, resource := range []string{gridsResource, servicesResource} {
		for range known[resource] {
			s.deliver(resource)
		}
	}
	return s, nil
}

func everything(api *fakeAPI) map[string]int {
	return map[string]int{servicesResource: len(api.history[servicesResource]), gridsResource: len(api.history[gridsResource])}
}

// deliver lets an informer hear of one more event. It returns false if there is none.
func (s *stepped) deliver(resource string) bool {
	position := s.delivered[resource]
	if position == len(s.api.history[resource]) {
		return false
	}
	s.delivered[resource]++
	event := s.api.history[resource][position]
	obj := event.obj.(runtime.Object).DeepCopyObject()
	old, _, err := s.indexers[resource].Get(obj)
	if err == nil && event.kind == watch.Deleted {
		err = s.indexers[resource].Delete(obj)
	} else if err == nil {
		err = s.indexers[resource].Update(obj)
	}
	if err != nil {
		panic(err)
	}
	switch event.kind {
	case watch.Added:
		s.handlers[resource].OnAdd(obj, false)
	case watch.Modified:
		s.handlers[resource].OnUpdate(old, obj)
	case watch.Deleted:
		s.handlers[resource].OnDelete(obj)
	}
	return true
}

// settle lets everything happen that is going to, until nothing changes any more.
func (s *stepped) settle(ctx context.Context) error {
	const patience = 100
	for range patience {
		before := s.api.revision
		for more := true; more; {
			more = s.deliver(gridsResource) || s.deliver(servicesResource)
		}
		s.queue.retry()
		for s.controller.next(ctx) {
		}
		if s.api.revision == before {
			return nil
		}
	}
	return fmt.Errorf("still writing after %d rounds", patience)
}

// resync is what informers with a resync period do.
func (s *stepped) resync(ctx context.Context) {
	for _, resource := range []string{gridsResource, servicesResource} {
		for _, obj := range s.indexers[resource].List() {
			s.handlers[resource].OnUpdate(obj, obj)
		}
	}
	for s.controller.next(ctx) {
	}
}

// written says which of the objects of the informers the controller has written into.
func (s *stepped) written() string {
	for resource, indexer := range s.indexers {
		pristine := map[string]metav1.Object{}
		for _, event := range s.api.history[resource] {
			pristine[event.obj.GetResourceVersion()] = event.obj
		}
		for _, obj := range indexer.List() {
			if diff := cmp.Diff(pristine[obj.(metav1.Object).GetResourceVersion()], obj); diff != "" {
				return fmt.Sprintf("%s in the cache (-heard +now):\n%s", resource, diff)
			}
		}
	}
	return ""
}

// eventList is a recorder.
type eventList struct{ events []string }

func (l *eventList) Event(_ runtime.Object, eventtype, reason, message string) {
	l.events = append(l.events, eventtype+" "+reason+": "+message)
}

func (l *eventList) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	l.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (l *eventList) AnnotatedEventf(obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any) {
	l.Eventf(obj, eventtype, reason, format, args...)
}

// take returns what was recorded since the last time.
func (l *eventList) take() []string {
	events := slices.Clone(l.events)
	l.events = nil
	return events
}

func start(t *testing.T, api *fakeAPI) *stepped {
	t.Helper()
	s, err := newStepped(api, everything(api))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stepped) mustSettle(t *testing.T) {
	t.Helper()
	if err := s.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if problem := s.written(); problem != "" {
		t.Fatal(problem)
	}
}
