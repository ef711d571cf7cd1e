// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// version is what a change made of a key: the content and the label that selectors look at. Gone: the key was deleted.
type version struct {
	revision uint64
	key      string
	content  string
	in       string
	gone     bool
}

func (v version) object() *example.Pod {
	parts := strings.Split(v.key, "/")
	object := pod(parts[2], parts[3], v.content)
	object.Labels = map[string]string{"in": v.in}
	return object
}

func versionOf(object *example.Pod) (version, error) {
	revision, err := versioner.ObjectResourceVersion(object)
	return version{
		revision: revision, key: "/pods/" + object.Namespace + "/" + object.Name,
		content: object.Annotations["version"], in: object.Labels["in"],
	}, err
}

// changelog is what writers know to have written: the truth that watches and LISTs are held against.
type changelog struct {
	mu      sync.Mutex
	changes []version
	batches [][2]uint64 // the first and the last revision of what one Apply wrote
}

func (l *changelog) add(changes ...version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, changes...)
	l.batches = append(l.batches, [2]uint64{changes[0].revision, changes[len(changes)-1].revision})
}

// seal sorts the changes, once all are there, and checks that there is one for each revision after start: none was given
// twice, none left out.
func (l *changelog) seal(t testing.TB, start uint64) {
	t.Helper()
	slices.SortFunc(l.changes, func(a, b version) int { return cmp.Compare(a.revision, b.revision) })
	for i, change := range l.changes {
		if want := start + 1 + uint64(i); change.revision != want {
			t.Fatalf("the writer of %+v was told revision %d, the next one after the change before is %d", change, change.revision, want)
		}
	}
	slices.SortFunc(l.batches, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
}

// insideBatch tells whether a state at revision has a part of what one Apply wrote.
func (l *changelog) insideBatch(revision uint64) bool {
	i, _ := slices.BinarySearchFunc(l.batches, revision, func(batch [2]uint64, revision uint64) int { return cmp.Compare(batch[1], revision) })
	return i < len(l.batches) && l.batches[i][0] <= revision && revision < l.batches[i][1]
}

// selection is what a watch or a LIST asks for.
type selection struct {
	name      string
	prefix    string
	recursive bool
	predicate storage.SelectionPredicate
	has       func(version) bool
}

func selectAll(name, prefix string) selection {
	return selection{name: name, prefix: prefix, recursive: true, predicate: storage.Everything, has: func(v version) bool { return strings.HasPrefix(v.key, prefix) }}
}

func selectKey(key string) selection {
	return selection{name: key, prefix: key, predicate: storage.Everything, has: func(v version) bool { return v.key == key }}
}

func selectLabel(name, prefix, in string) selection {
	s := selectAll(name, prefix)
	s.predicate = storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"in": in}), Field: fields.Everything(), GetAttrs: podAttrs}
	s.has = func(v version) bool { return v.in == in && strings.HasPrefix(v.key, prefix) }
	return s
}

func selectName(name, prefix, object string) selection {
	s := selectAll(name, prefix)
	s.predicate = storage.SelectionPredicate{Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", object), GetAttrs: podAttrs}
	s.has = func(v version) bool { return strings.HasPrefix(v.key, prefix) && strings.HasSuffix(v.key, "/"+object) }
	return s
}

func (s selection) options(resourceVersion string) storage.ListOptions {
	return storage.ListOptions{Recursive: s.recursive, Predicate: s.predicate, ResourceVersion: resourceVersion}
}

func (v version) event(kind watch.EventType) string {
	return fmt.Sprintf("%s %s@%d=%s", kind, v.key, v.revision, v.content)
}

// timeline is all events of one selection.
type timeline struct {
	revisions []uint64
	events    []string
}

// timeline returns what a watch with this selection is to see from the first change on.
func (l *changelog) timeline(s selection) timeline {
	present := map[string]version{}
	var out timeline
	add := func(kind watch.EventType, v version) {
		out.revisions = append(out.revisions, v.revision)
		out.events = append(out.events, v.event(kind))
	}
	for _, change := range l.changes {
		before, existed := present[change.key]
		was, is := existed && s.has(before), !change.gone && s.has(change)
		if present[change.key] = change; change.gone {
			delete(present, change.key)
		}
		switch {
		case was && is:
			add(watch.Modified, change)
		case is:
			add(watch.Added, change)
		case was: // with its last content inside the selection, at the revision of the change
			before.revision = change.revision
			add(watch.Deleted, before)
		}
	}
	return out
}

// between returns the events after from, up to to.
func (l timeline) between(from, to uint64) []string {
	first, _ := slices.BinarySearch(l.revisions, from+1)
	last, _ := slices.BinarySearch(l.revisions, to+1)
	return l.events[first:max(first, last)]
}

// state is what a LIST with this selection is to show at revision, in the order of the keys.
func (l *changelog) state(s selection, revision uint64) []string {
	present := map[string]version{}
	for _, change := range l.changes {
		if change.revision > revision {
			break
		}
		present[change.key] = change
	}
	out := []string{}
	for _, v := range present {
		if !v.gone && s.has(v) {
			out = append(out, v.event(watch.Added))
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

func compareKeys(a, b string) int {
	return cmp.Compare(strings.SplitN(a, "@", 2)[0], strings.SplitN(b, "@", 2)[0])
}
