// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// stood remembers which revisions of the view stood for which of upstream, as far
// as one can see from outside, and compares the view's answers with that.
type stood struct {
	byKind map[string]map[cause]*standing // by kind
	// relisted: all was told anew, also what had not changed and is not noted again.
	relisted map[string]bool
	// deletedAt is what was deleted by the event under way, if it told the revision.
	deletedAt map[string]cause
	// seen is how many changes of each kind were looked at.
	seen map[string]int
}

// standing is what stood for one revision of an object upstream.
type standing struct {
	revisions []string
	// doubtful: the view has had no revision for it at some time.
	doubtful bool
}

func newStood() *stood {
	return &stood{
		byKind:    map[string]map[cause]*standing{"service": {}, "slice": {}, "endpoints": {}},
		relisted:  map[string]bool{},
		deletedAt: map[string]cause{},
		seen:      map[string]int{},
	}
}

// listed is for a list, from which on revisions upstream may mean something else.
func (s *stood) listed(kind string) {
	clear(s.byKind[kind])
	s.relisted[kind] = true
}

func (s *stood) deleted(kind string, name types.NamespacedName, revision string) {
	s.deletedAt[kind] = cause{name, revision}
}

// check looks at every object after an event.
func (s *stood) check(m *interleaving) error {
	r := m.reference
	for i, of := range []struct {
		kind      string
		gr        schema.GroupResource
		published bool
		told      map[types.NamespacedName]string
	}{
		{"service", Services, r.published, revisionsOf(r.services)},
		{"slice", EndpointSlices, r.published, revisionsOf(r.slices)},
		{"endpoints", Endpoints, r.publishedEndpoints, revisionsOf(r.endpoints)},
	} {
		log, known := m.logs[i], s.byKind[of.kind]
		if gone, ok := s.deletedAt[of.kind]; ok {
			delete(s.deletedAt, of.kind)
			if last := len(log.changes) - 1; gone.upstream != "" && last >= max(log.before, s.seen[of.kind]) && log.changes[last].kind == watch.Deleted && log.changes[last].name == gone.name {
				known[gone] = &standing{revisions: []string{strconv.FormatUint(log.changes[last].after.revision, 10)}}
			}
		}
		s.seen[of.kind] = len(log.changes)
		for name, upstream := range of.told {
			if err := checkCurrent(m, of.gr, of.published, log.last()[name], cause{name, upstream}, known); err != nil {
				return fmt.Errorf("%s %s: %w", of.kind, name, err)
			}
		}
		if s.relisted[of.kind] {
			s.relisted[of.kind] = false
			for _, standing := range known {
				standing.doubtful = true
			}
		}
		for from, standing := range known {
			if got, ok := viewRevisionNow(m.view, of.gr, from); ok && !slices.Contains(standing.revisions, got) || !ok && !standing.doubtful {
				return fmt.Errorf("%s %s: for upstream's former revision %s the view has %q, want one of %q", of.kind, from.name, from.upstream, got, standing.revisions)
			}
		}
	}
	return nil
}

// checkCurrent asks for the revision that upstream's present one has in the view,
// and back.
func checkCurrent(m *interleaving, gr schema.GroupResource, published bool, shown version, from cause, known map[cause]*standing) error {
	got, ok := viewRevisionNow(m.view, gr, from)
	shows := published && shown.revision != 0
	revision := strconv.FormatUint(shown.revision, 10)
	if want := shows && (gr == Services || !m.reference.differs(gr, from.name)); ok != want || ok && got != revision {
		return fmt.Errorf("for upstream's revision %s the view has %q, want %s, %t", from.upstream, got, revision, want)
	}
	entry := known[from]
	if entry == nil {
		entry = &standing{}
		known[from] = entry
	}
	if ok {
		entry.revisions = append(entry.revisions, got)
	}
	if !ok || !followsMetadata(m.view, gr, from.name) {
		entry.doubtful = true
	}
	back, ok := m.view.UpstreamRevision(gr, from.name.Namespace, from.name.Name, revision, Carries{})
	if ok != shows || ok && back != from.upstream {
		return fmt.Errorf("revision %s of the view stands for %q, want %s, %t", revision, back, from.upstream, shows)
	}
	before := strconv.FormatUint(shown.revision-1, 10)
	if former, ok := m.view.UpstreamRevision(gr, from.name.Namespace, from.name.Name, before, Carries{}); ok {
		return fmt.Errorf("revision %s, which the view does not have, stands for %s", before, former)
	}
	return nil
}

// followsMetadata reports whether the view has all of the metadata of an object.
func followsMetadata(v *View, gr schema.GroupResource, name types.NamespacedName) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw, view := v.metadataLocked(gr, name)
	return raw != nil && view != nil && uncomparedEqual(raw, view)
}

// viewRevisionNow does not wait.
func viewRevisionNow(v *View, gr schema.GroupResource, of cause) (string, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return v.ViewRevision(ctx, gr, of.name.Namespace, of.name.Name, of.upstream)
}

func revisionsOf[T object](all map[types.NamespacedName]T) map[types.NamespacedName]string {
	revisions := map[types.NamespacedName]string{}
	for name, obj := range all {
		revisions[name] = obj.GetResourceVersion()
	}
	return revisions
}
