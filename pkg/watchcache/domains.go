// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/grid-apiserver/grid-apiserver/internal/mutant"
)

// DomainWatcher follows the Nodes that carry a label with a given value.
type DomainWatcher interface {
	// Watch starts to follow the Nodes with key=value, reports their names to
	// sink until the returned function is called, and does not block. It never
	// calls sink from within Watch or stop.
	Watch(key, value string, sink DomainSink) (stop func())
}

// DomainSink receives the names of the Nodes in a domain.
type DomainSink interface {
	// Replace tells all names at once: first, and after each relist.
	Replace(names []string)
	// Add and Delete tell one Node that entered or left. Either may repeat
	// what is known.
	Add(name string)
	Delete(name string)
}

// topologyKey is a label key that the policy of at least one Service names.
type topologyKey struct {
	name string
	// services are those whose policy, in force or wanted, names the key.
	services map[*service]struct{}
	// known is set once current can be relied upon.
	known bool
	// current is the domain in force; nil means that the own Node lacks the
	// key, so nothing matches.
	current *domain
	// next is the domain that replaces current as soon as it is synced.
	next *domain
}

// domain is the set of the Nodes that carry key with one value.
type domain struct {
	view    *View
	key     *topologyKey
	value   string
	members sets.Set[string]
	stop    func()
	stopped bool
}

var _ DomainSink = (*domain)(nil)

// SetOwnLabels tells the labels of the own Node.
func (v *View) SetOwnLabels(labels map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	if v.labels != nil && maps.Equal(v.labels, labels) {
		return
	}
	v.labels = maps.Clone(labels)
	if v.labels == nil {
		v.labels = map[string]string{}
	}
	for _, k := range v.keys {
		v.followKeyLocked(k)
	}
}

// useKeyLocked registers that the policy of s names the key.
func (v *View) useKeyLocked(name string, s *service) *topologyKey {
	k := v.keys[name]
	if k == nil {
		k = &topologyKey{name: name, services: map[*service]struct{}{}}
		v.keys[name] = k
		k.services[s] = struct{}{}
		v.followKeyLocked(k)
	}
	k.services[s] = struct{}{}
	return k
}

// releaseKeyLocked undoes useKeyLocked. A key that no Service names is not
// watched any more.
func (v *View) releaseKeyLocked(name string, s *service) {
	k := v.keys[name]
	if k == nil {
		return
	}
	delete(k.services, s)
	if len(k.services) == 0 {
		k.current.stopLocked()
		k.next.stopLocked()
		delete(v.keys, name)
	}
}

// followKeyLocked brings the domains of a key in line with the label of the own
// Node. A lost label takes effect at once; a new value when its domain has been
// synced, until then the old domain stays in force.
func (v *View) followKeyLocked(k *topologyKey) {
	if v.labels == nil {
		return
	}
	value, ok := v.labels[k.name]
	switch {
	case !ok:
		changed := k.current != nil || !k.known
		k.current.stopLocked()
		k.next.stopLocked()
		k.current, k.next, k.known = nil, nil, true
		if changed {
			v.keyChangedLocked(k)
		}
	case k.current != nil && k.current.value == value:
		k.next.stopLocked()
		k.next = nil
	case k.next != nil && k.next.value == value:
		// Being synced.
	default:
		k.next.stopLocked()
		k.next = &domain{view: v, key: k, value: value}
		k.next.stop = v.domains.Watch(k.name, value, k.next)
	}
}

// keyChangedLocked applies a changed domain: policies that waited for it come
// into force, the others are selected anew.
func (v *View) keyChangedLocked(k *topologyKey) {
	affected := slices.SortedFunc(maps.Keys(k.services), func(a, b *service) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	for _, s := range affected {
		if !v.commitPolicyLocked(s) {
			v.reselectLocked(s)
		}
	}
}

func (d *domain) stopLocked() {
	if d == nil || d.stopped {
		return
	}
	d.stopped = true
	if d.stop != nil {
		d.stop()
	}
}

// Replace implements DomainSink. The first call syncs the domain.
func (d *domain) Replace(names []string) {
	v := d.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.stopped {
		return
	}
	defer v.finishLocked()
	members := sets.New(names...)
	switch {
	case d == d.key.next:
		d.members = members
		d.key.current.stopLocked()
		d.key.current, d.key.next, d.key.known = d, nil, true
		v.logger.V(2).Info("Topology domain is in force", "key", d.key.name, "value", d.value, "nodes", len(members))
		v.keyChangedLocked(d.key)
	case !d.members.Equal(members):
		d.members = members
		if mutant.StaleDomain {
			return
		}
		v.keyChangedLocked(d.key)
	}
}

// Add implements DomainSink.
func (d *domain) Add(name string) { d.update(name, true) }

// Delete implements DomainSink.
func (d *domain) Delete(name string) { d.update(name, false) }

func (d *domain) update(name string, member bool) {
	v := d.view
	v.mu.Lock()
	defer v.mu.Unlock()
	// A domain that is not in force yet gets its members by Replace.
	if d.stopped || d != d.key.current || d.members.Has(name) == member {
		return
	}
	defer v.finishLocked()
	if member {
		d.members.Insert(name)
	} else {
		d.members.Delete(name)
	}
	v.logger.V(2).Info("Node entered or left a topology domain", "node", name, "member", member, "key", d.key.name, "value", d.value)
	if name != v.nodeName {
		v.keyChangedLocked(d.key)
	}
}
