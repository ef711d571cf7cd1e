// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// follow records what upstream has, from its own watch.
func (r *randomRun) follow(kind int) <-chan struct{} {
	k := writtenKinds[kind]
	list := k.list()
	if err := k.client(r.upstream).Get().Namespace("default").Resource(k.resource).Do(r.ctx).Into(list); err != nil {
		r.t.Fatal(err)
	}
	from := list.(metav1.ListInterface).GetResourceVersion()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for r.ctx.Err() == nil { // upstream ends the watch of a slow client
			events, err := k.client(r.upstream).Get().Namespace("default").Resource(k.resource).Param("watch", "true").
				Param("resourceVersion", from).Watch(r.ctx)
			if err != nil {
				r.errorf("watching upstream: %v", err)
				return
			}
			for event := range events.ResultChan() {
				object, ok := event.Object.(written)
				if !ok {
					r.errorf("upstream's watch: %v", event.Object)
					return
				}
				if object.GetName() == "the-end" {
					events.Stop()
					return
				}
				from = object.GetResourceVersion()
				r.history[kind] = append(r.history[kind], event)
			}
		}
	}()
	return ended
}

// settle ends a trouble when the view follows upstream again.
func (r *randomRun) settle() {
	name := fmt.Sprintf("settled-%d", r.troubles.Load())
	for _, k := range writtenKinds {
		if err := k.client(r.upstream).Post().Namespace("default").Resource(k.resource).Body(k.make(name)).Do(r.ctx).Error(); err != nil {
			r.errorf("settling: %v", err)
			return
		}
		eventually(r.t, func(ctx context.Context) string {
			_, client := r.view.clients()
			if err := k.client(client).Get().Namespace("default").Resource(k.resource).Name(name).Do(ctx).Error(); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	r.troubles.Add(1)
}

// check compares what was acknowledged with what upstream has had.
func (r *randomRun) check() {
	introduced := map[string]types.UID{}
	for kind, events := range r.history {
		before := map[types.UID]map[string]bool{}
		want := map[types.UID]int{} // endpoints
		for _, event := range events {
			object := event.Object.(written)
			marks := marksOf(object)
			for m := range before[object.GetUID()] {
				if !marks[m] {
					r.t.Errorf("%s %s: %s was lost in %s %s", writtenKinds[kind].resource, object.GetName(), m, event.Type, object.GetResourceVersion())
				}
			}
			for m := range marks {
				if other, ok := introduced[m]; ok && other != object.GetUID() {
					r.t.Errorf("%s %s: %s is in two objects", writtenKinds[kind].resource, object.GetName(), m)
				}
				introduced[m] = object.GetUID()
			}
			if _, ok := want[object.GetUID()]; !ok {
				want[object.GetUID()] = 2
				if len(marks) == 1 && strings.HasPrefix(r.makers(marks)[0], "apply of metadata") {
					want[object.GetUID()] = 0 // created by that
				}
			}
			if n := endpointsIn(object); n != want[object.GetUID()] && kind != 0 {
				r.t.Errorf("%s %s: %d endpoints upstream in %s %s, of %v", writtenKinds[kind].resource, object.GetName(), n, event.Type,
					object.GetResourceVersion(), r.makers(marks))
				want[object.GetUID()] = n // what follows is made of it
			}
			before[object.GetUID()] = marks
		}
	}
	for _, a := range r.acked {
		if introduced[a.mark] != a.uid {
			r.t.Errorf("%s of %s %s was acknowledged, and is not upstream", a.what, writtenKinds[a.kind].resource, a.name)
		}
	}
}

// makers tell what wrote the marks.
func (r *randomRun) makers(marks map[string]bool) []string {
	var makers []string
	for _, m := range slices.Sorted(maps.Keys(marks)) {
		makers = append(makers, r.whats[m])
	}
	return makers
}

// stateOf is what an event tells of an object, but for what the view changes.
func stateOf(event watch.Event) string {
	object := event.Object.(written)
	return fmt.Sprint(event.Type == watch.Deleted, object.GetUID(), slices.Sorted(maps.Keys(marksOf(object))))
}

// statesOf are the states that events tell, by the names of the objects.
func statesOf(events []watch.Event) map[string][]string {
	states := map[string][]string{}
	for _, event := range events {
		object, ok := event.Object.(written)
		if !ok {
			continue // it was ended with an error
		}
		of := states[object.GetName()]
		if state := stateOf(event); len(of) == 0 || of[len(of)-1] != state {
			states[object.GetName()] = append(of, state)
		}
	}
	return states
}

// checkWatches looks whether each watch from an answer told exactly what came after it.
func (r *randomRun) checkWatches(calm bool) {
	for _, a := range r.watches {
		resource := writtenKinds[a.kind].resource
		if calm && !a.ended {
			r.t.Errorf("a watch of %s has ended early: %v", resource, a.events)
			continue
		}
		all, told := statesOf(r.history[a.kind]), statesOf(a.events)
		for name, states := range told {
			want := all[name]
			if name == a.name {
				at := slices.Index(want, fmt.Sprint(false, a.uid, slices.Sorted(maps.Keys(a.marks))))
				want = want[at+1:]
				ownFirst := len(states) == len(want)+1 && states[0] == all[name][max(at, 0)]
				if calm && len(want) != len(states) && !ownFirst {
					r.t.Errorf("a watch of %s from an answer of %s tells %d states, want %d:\n%s\n%s", resource, name, len(states), len(want),
						strings.Join(states, "\n"), strings.Join(want, "\n"))
				}
			}
			if calm {
				want = want[max(0, len(want)-len(states)):]
				if name != a.name && !slices.Equal(want, states) {
					r.t.Errorf("a watch of %s tells other states of %s:\n%s\nwant\n%s", resource, name, strings.Join(states, "\n"), strings.Join(want, "\n"))
				}
				continue
			}
			for _, state := range states {
				at := slices.Index(all[name], state)
				// The trigger of a relist may tell a deletion with the last state that was known.
				if at < 0 && !strings.HasPrefix(state, "true") {
					r.t.Errorf("a watch of %s tells a state of %s that never was: %s", resource, name, state)
				}
			}
		}
	}
}
