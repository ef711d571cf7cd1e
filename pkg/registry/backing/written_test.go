// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backing_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// change is an event, and state what is there: the content by name.
type change struct {
	kind          watch.EventType
	name, content string
}
type state map[string]string

func (s state) apply(c change) {
	if s[c.name] = c.content; c.kind == watch.Deleted {
		delete(s, c.name)
	}
}

// era is what was written between two Resets; each change took the next revision after start.
type era struct {
	start uint64
	log   []change
	now   state
}

func (e era) at(revision uint64) state {
	was := state{"n0": "base"}
	for _, c := range e.log[:min(revision-e.start, uint64(len(e.log)))] {
		was.apply(c)
	}
	return was
}

// stack is a store, what the server puts over it, and what was written.
type stack struct {
	store *memory.Store
	rest  *readonly.REST
	end   atomic.Uint64 // the last revision of all, known before it is written; at first more than any
	mu    sync.Mutex    // held while writing
	eras  []era         // their revisions are far apart
}

func (s *stack) reset(revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eras = append(s.eras, era{start: revision, now: state{"n0": "base"}})
	s.store.Reset(revision, map[string]runtime.Object{"/namespaces/n0": newNamespace("n0", "base")})
}

func (s *stack) write(random *rand.Rand, changes int) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.eras[len(s.eras)-1]
	var batch []memory.Change
	for range changes {
		c := change{watch.Added, fmt.Sprint("n", random.IntN(8)), fmt.Sprintf("%d+%d", e.start, len(e.log))}
		step := memory.Change{Key: "/namespaces/" + c.name}
		switch old, ok := e.now[c.name]; {
		case ok && random.IntN(3) == 0:
			c.kind, c.content = watch.Deleted, old
		case ok:
			c.kind = watch.Modified
			fallthrough
		default:
			step.Object = newNamespace(c.name, c.content)
		}
		batch = append(batch, step)
		e.now.apply(c)
		e.log = append(e.log, c)
	}
	return s.store.Apply(batch...)
}

// find returns the era of a revision, and whether it is the present one.
func (s *stack) find(revision uint64) (found era, present bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.eras {
		if revision >= e.start && revision-e.start <= uint64(len(e.log)) {
			return e, i == len(s.eras)-1
		}
	}
	return era{}, false
}

func newNamespace(name, content string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"content": content}}}
}
