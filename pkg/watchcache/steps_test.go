// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// stepKind is something that can happen, so often as its weight says.
type stepKind struct {
	name   string
	weight int
	do     func(*interleaving)
}

var weightedSteps = func() []stepKind {
	var all []stepKind
	for _, kind := range []stepKind{
		{"another Node is added or relabelled", 6, (*interleaving).setNode},
		{"another Node is deleted", 2, func(m *interleaving) { delete(m.nodes, pick(m.generator, allNodes[1:])) }},
		{"the own Node is relabelled", 4, (*interleaving).relabelOwnNode},
		{"the own Node is deleted", 1, func(m *interleaving) { delete(m.nodes, ownNode) }},
		{"the view hears of the own Node", 2, (*interleaving).tellOwnNode},
		{"a domain watch delivers", 10, (*interleaving).deliverSome},
		{"a watch that was ended delivers", 1, (*interleaving).deliverLate},
		{"a Service is set", 8, func(m *interleaving) { m.services.put(m, m.service()) }},
		{"a Service is deleted", 3, func(m *interleaving) { m.services.delete(m, pick(m.generator, serviceNames)) }},
		{"a slice is set", 9, func(m *interleaving) { m.slices.put(m, m.slice()) }},
		{"a slice is deleted", 3, func(m *interleaving) { m.slices.delete(m, pick(m.generator, sliceNames)) }},
		{"Endpoints are set", 5, func(m *interleaving) { m.endpoints.put(m, m.generator.endpoints()) }},
		{"Endpoints are deleted", 2, func(m *interleaving) { m.endpoints.delete(m, pick(m.generator, serviceNames)) }},
		{"an object is written again", 4, (*interleaving).repeat},
		{"default/kubernetes is annotated", 2, (*interleaving).annotateKubernetes},
		{"Endpoints are asked for", 2, func(m *interleaving) { m.requested = true }},
		{"watches are cut", 2, (*interleaving).cut},
		{"something is listed", 7, (*interleaving).relist},
		{"upstream is restored", 1, (*interleaving).restore},
		{"all comes to rest", 2, (*interleaving).converge},
		{"much happens and ends as it began", 1, (*interleaving).burst},
		{"the server is restarted", 1, (*interleaving).restart},
	} {
		all = append(all, slices.Repeat([]stepKind{kind}, kind.weight)...)
	}
	return all
}()

func (m *interleaving) setNode() { m.nodes[pick(m.generator, allNodes[1:])] = m.labels() }

func (m *interleaving) relabelOwnNode() {
	m.nodes[ownNode] = m.labels()
	if m.oneIn(2) {
		m.tellOwnNode()
	}
}

// tellOwnNode tells the labels of the own Node, or the last ones if it is not
// there. The watches of the domains and that of the own Node are not ordered.
func (m *interleaving) tellOwnNode() {
	labels, ok := m.nodes[ownNode]
	if !ok {
		labels = m.ownLabels
	}
	if labels == nil {
		return
	}
	m.tell(fmt.Sprintf("the own labels %v", labels), func() {
		m.ownLabels, m.reference.own = labels, labels
		m.view.SetOwnLabels(maps.Clone(labels))
	})
}

// deliverSome lets one domain watch tell one thing.
func (m *interleaving) deliverSome() {
	if open := m.domains.open(); len(open) > 0 {
		m.deliver(pick(m.generator, open), m.oneIn(6))
	}
}

// deliver lets a domain watch tell a list, or one of the differences between
// what it told and what is, or what is known. It reports whether there is more.
func (m *interleaving) deliver(w *fakeWatch, relist bool) (more bool) {
	members := m.nodesWith(w.key, w.value)
	if w.members == nil || relist {
		members = shuffled(m.generator, members)
		m.tell(fmt.Sprintf("the nodes with %s=%s were listed: %v", w.key, w.value, members), func() {
			w.replace(members)
			w.sink.Replace(members)
		})
		return false
	}
	var changed []string
	for _, name := range allNodes {
		if w.members[name] != slices.Contains(members, name) {
			changed = append(changed, name)
		}
	}
	name := pick(m.generator, allNodes)
	if len(changed) > 0 {
		name = pick(m.generator, changed)
	}
	member := slices.Contains(members, name)
	m.tell(fmt.Sprintf("node %s has %s=%s: %t", name, w.key, w.value, member), func() {
		w.members[name] = member
		if member {
			w.sink.Add(name)
		} else {
			w.sink.Delete(name)
		}
	})
	return len(changed) > 1
}

// deliverLate lets a watch that the view has ended deliver once more, as can
// happen when both take place at the same time.
func (m *interleaving) deliverLate() {
	stopped := m.domains.ended()
	if len(stopped) == 0 {
		return
	}
	w, names := pick(m.generator, stopped), shuffled(m.generator, allNodes)
	m.tell(fmt.Sprintf("the ended watch of %s=%s tells of %s", w.key, w.value, names[0]), func() {
		switch m.IntN(3) {
		case 0:
			w.sink.Add(names[0])
		case 1:
			w.sink.Delete(names[0])
		case 2:
			w.sink.Replace(names[:1])
		}
	})
}

func (m *interleaving) repeat() {
	switch m.IntN(3) {
	case 0:
		m.services.repeat(m)
	case 1:
		m.slices.repeat(m)
	case 2:
		m.endpoints.repeat(m)
	}
}

func (m *interleaving) annotateKubernetes() {
	m.kubernetes = m.kubernetesAnnotations()
	if m.kubernetesConnected {
		m.tellKubernetes()
	}
}

func (m *interleaving) tellKubernetes() {
	m.tell(fmt.Sprintf("the annotations %v of default/kubernetes", m.kubernetes), func() {
		m.reference.kubernetes, m.reference.kubernetesSynced, m.kubernetesConnected = m.kubernetes, true, true
		m.view.SetKubernetesAnnotations(maps.Clone(m.kubernetes))
	})
}

// cut breaks watches: what happens next, the view hears of by a list alone.
func (m *interleaving) cut() {
	for _, connected := range []*bool{&m.services.connected, &m.slices.connected, &m.endpoints.connected, &m.kubernetesConnected} {
		if m.oneIn(2) {
			*connected = false
		}
	}
}

// restore sets upstream back, as when its etcd is restored from a backup: other
// contents come under revisions that there were before.
func (m *interleaving) restore() {
	m.revision -= m.IntN(m.revision + 1)
	m.services.connected, m.slices.connected, m.endpoints.connected, m.kubernetesConnected = false, false, false, false
	for range m.IntN(4) {
		m.services.put(m, m.service())
		m.slices.put(m, m.slice())
		m.endpoints.put(m, m.generator.endpoints())
		m.services.delete(m, pick(m.generator, serviceNames))
		m.slices.delete(m, pick(m.generator, sliceNames))
		m.endpoints.delete(m, pick(m.generator, serviceNames))
	}
}

// lists returns what lists one resource each, of those whose watches are cut or
// never began, and of the others.
func (m *interleaving) lists() (cut, connected []func()) {
	add := func(isConnected bool, list func()) {
		if isConnected {
			connected = append(connected, list)
		} else {
			cut = append(cut, list)
		}
	}
	add(m.services.connected, func() { m.services.relist(m) })
	add(m.slices.connected, func() { m.slices.relist(m) })
	add(m.kubernetesConnected, m.tellKubernetes)
	if m.requested {
		add(m.endpoints.connected, func() { m.endpoints.relist(m) })
	}
	return cut, connected
}

// relist lists one resource: the first time, after a cut, or because upstream
// has ended the watch.
func (m *interleaving) relist() {
	cut, connected := m.lists()
	if len(cut) > 0 && !m.oneIn(4) {
		connected = cut
	}
	if len(connected) > 0 {
		pick(m.generator, connected)()
	}
}

// converge lets the view hear of everything, in any order, and then compares
// with upstream itself.
func (m *interleaving) converge() {
	cut, _ := m.lists()
	for _, step := range shuffled(m.generator, append(cut, m.tellOwnNode)) {
		step()
		m.deliverSome()
	}
	for again := true; again && m.err == nil; {
		again = false
		for _, w := range m.domains.open() {
			first := w.members == nil
			if more := m.deliver(w, false); more || first {
				again = true
				break // a first list can have the view open and end watches
			}
		}
	}
	if m.err == nil && m.reference.own != nil {
		m.compareWithUpstream()
	}
}

// compareWithUpstream compares what the reference expects with what upstream's
// present objects and labels make by definition.
func (m *interleaving) compareWithUpstream() {
	r := m.reference
	if !r.published || r.pending {
		m.fail("the view is not complete though it has heard of everything: %+v", m.view.Synced())
		return
	}
	wantServices, wantSlices, wantEndpoints := r.byDefinition(m.nodes)
	for _, all := range []struct{ got, want contents }{{r.wantServices, wantServices}, {r.wantSlices, wantSlices}, {r.wantEndpoints, wantEndpoints}} {
		if err := sameContents(all.got, all.want); err != nil {
			m.fail("expected is not upstream's filtered by definition: %w", err)
		}
	}
}

// burst stands for as many changes as bring the revisions to the end of what is
// reserved on disk.
func (m *interleaving) burst() {
	reserved := m.floor.floor
	for _, log := range m.logs {
		if m.oneIn(2) {
			log.skipTo(reserved - 1 - uint64(m.IntN(3)))
		}
	}
}

// restart ends the process of the view and starts another, after a clock step.
func (m *interleaving) restart() {
	m.stop()
	m.now = m.now.Add(time.Duration(m.IntN(7201)-3600) * time.Second)
	m.start()
}
