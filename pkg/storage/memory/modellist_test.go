// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// openList is a LIST of which more pages are to be read. Writes may come between them.
type openList struct {
	selection
	opts     storage.ListOptions
	revision uint64   // of the first page, so of all
	rest     []string // the keys that are to come
	last     string   // the key that came last
}

// list reads a page: of the LIST that is open, or of a new one.
func (m *model) list(t testing.TB) {
	t.Helper()
	if m.open != nil {
		m.page(t, m.open)
		return
	}
	s := []selection{
		selectAll("all", "/pods/"), selectAll("namespace", "/pods/a/"), selectLabel("label", "/pods/", "yes"),
		selectLabel("label in namespace", "/pods/b/", "no"), selectName("name", "/pods/", "p1"), selectKey("/pods/a/p0"),
	}[m.choose(6)]
	l := &openList{selection: s, revision: m.revision}
	future := uint64(m.choose(2))
	switch m.choose(5) {
	case 0:
		l.opts = s.options("")
		future = 0
	case 1:
		l.opts = s.options("0")
		future = 0
	case 2:
		l.opts = s.options(fmt.Sprint(m.past()))
		l.opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		if future > 0 {
			l.opts.ResourceVersion = fmt.Sprint(m.revision + future)
		}
	case 3, 4:
		l.revision = m.past()
		if future > 0 && m.choose(4) == 0 {
			l.revision = m.revision + future
		}
		future = l.revision - min(l.revision, m.revision)
		l.opts = s.options(fmt.Sprint(l.revision))
		l.opts.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	if s.recursive {
		l.opts.Predicate.Limit = int64(m.choose(4))
	}
	m.note("LIST of %s at %q %s, limit %d", s.name, l.opts.ResourceVersion, l.opts.ResourceVersionMatch, l.opts.Predicate.Limit)
	if future > 0 {
		if err := m.store.GetList(t.Context(), s.prefix, l.opts, &example.PodList{}); !storage.IsTooLargeResourceVersion(err) {
			m.failf(t, "LIST of %s from the future: %v", s.name, err)
		}
		return
	}
	l.rest = m.keys(s, m.at(l.revision))
	m.page(t, l)
}

// page reads the next page of l, and leaves l open if there are more.
func (m *model) page(t testing.TB, l *openList) {
	t.Helper()
	m.open = nil
	list := &example.PodList{}
	err := m.store.GetList(t.Context(), l.prefix, l.opts, list)
	exact := l.opts.Predicate.Continue != "" || l.opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if exact && l.revision < m.floor {
		if !apierrors.IsResourceExpired(err) {
			m.failf(t, "LIST of %s at %d, below %d: %v, want 410 Expired", l.name, l.revision, m.floor, err)
		}
		m.continueInconsistently(t, l, err)
		return
	}
	if err != nil {
		m.failf(t, "LIST of %s at %d, from %d on: %v", l.name, l.revision, m.floor, err)
	}
	if list.ResourceVersion != fmt.Sprint(l.revision) {
		m.failf(t, "LIST of %s at %d came back as %s", l.name, l.revision, list.ResourceVersion)
	}
	want := l.rest
	if limit := int(l.opts.Predicate.Limit); limit > 0 && limit < len(want) {
		want = want[:limit]
	}
	m.checkItems(t, l, list, want, m.at(l.revision))
	l.rest = l.rest[len(want):]
	if len(l.rest) > 0 && list.Continue == "" {
		m.failf(t, "LIST of %s at %d ends before %v", l.name, l.revision, l.rest)
	}
	if list.Continue == "" {
		return
	}
	if l.opts.Predicate.Empty() && (list.RemainingItemCount == nil || *list.RemainingItemCount != int64(len(l.rest))) {
		m.failf(t, "LIST of %s at %d: remaining %v, want %d", l.name, l.revision, list.RemainingItemCount, len(l.rest))
	}
	if len(want) > 0 {
		l.last = want[len(want)-1]
	}
	l.opts.Predicate.Continue, l.opts.ResourceVersion, l.opts.ResourceVersionMatch = list.Continue, "", ""
	m.open = l
}

func (m *model) checkItems(t testing.TB, l *openList, list *example.PodList, want []string, state map[string]version) {
	t.Helper()
	var wanted, got []version
	for _, key := range want {
		wanted = append(wanted, state[key])
	}
	for i := range list.Items {
		v, err := versionOf(&list.Items[i])
		if err != nil {
			m.failf(t, "LIST of %s: %v", l.name, err)
		}
		got = append(got, v)
	}
	if !slices.Equal(wanted, got) {
		m.failf(t, "LIST of %s at %d (-want +got):\n%s", l.name, l.revision, cmp.Diff(wanted, got, cmp.AllowUnexported(version{})))
	}
}

// continueInconsistently takes the offer that comes with 410 Expired between two pages: go on at the same key, in the present.
func (m *model) continueInconsistently(t testing.TB, l *openList, expired error) {
	t.Helper()
	if l.opts.Predicate.Continue == "" {
		return
	}
	var status apierrors.APIStatus
	if !errors.As(expired, &status) || status.Status().Continue == "" {
		m.failf(t, "LIST of %s: no offer to go on: %v", l.name, expired)
	}
	l.opts.Predicate.Continue, l.opts.Predicate.Limit = status.Status().Continue, 0
	list := &example.PodList{}
	if err := m.store.GetList(t.Context(), l.prefix, l.opts, list); err != nil || list.ResourceVersion != fmt.Sprint(m.revision) || list.Continue != "" {
		m.failf(t, "LIST of %s, going on after 410: %v, resourceVersion %s, want %d", l.name, err, list.ResourceVersion, m.revision)
	}
	want := slices.DeleteFunc(m.keys(l.selection, m.current), func(key string) bool { return key <= l.last })
	m.checkItems(t, l, list, want, m.current)
}
