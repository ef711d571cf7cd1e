// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// referenceDomain is the domain of a topology key in use.
type referenceDomain struct {
	// follows is the watch of the value that the own Node has now; nil if it
	// lacks the key.
	follows *fakeWatch
	// known says that a domain is in force: that of inForce, or, if that is nil,
	// that of a node without the label.
	known   bool
	inForce *fakeWatch
}

// keysInUse returns the keys that the policies of the Services name, those in
// force and those that are asked for.
func (r *reference) keysInUse() map[string]bool {
	used := map[string]bool{}
	for name, s := range r.services {
		for _, policy := range []topology.Policy{r.policies[name], policyOf(s)} {
			for _, key := range policy.DomainKeys() {
				used[key] = true
			}
		}
	}
	return used
}

// forgetDomains: a key that no policy names any more is not followed.
func (r *reference) forgetDomains() {
	used := r.keysInUse()
	maps.DeleteFunc(r.domains, func(key string, _ *referenceDomain) bool { return !used[key] })
}

// settleDomains: a lost label takes effect at once, another value when the watch
// of its nodes has been synced. Until then the domain before stays in force.
func (r *reference) settleDomains(open []*fakeWatch) {
	if r.own == nil {
		return
	}
	for key := range r.keysInUse() {
		d := r.domains[key]
		if d == nil {
			d = &referenceDomain{}
			r.domains[key] = d
		}
		value, ok := r.own[key]
		if !ok {
			*d = referenceDomain{known: true}
			continue
		}
		follows := watchOf(open, key, value)
		if d.follows != nil && d.follows != follows && d.follows.value == value {
			// Within one event nobody used the key any more, and then somebody did.
			*d = referenceDomain{}
		}
		d.follows = follows
		if follows != nil && follows.members != nil {
			d.known, d.inForce = true, follows
		}
	}
}

// settlePolicies puts the policies into force whose domains are all known.
func (r *reference) settlePolicies() {
	r.pending = false
	maps.DeleteFunc(r.policies, func(name types.NamespacedName, _ topology.Policy) bool { return r.services[name] == nil })
	for name, s := range r.services {
		policy := policyOf(s)
		if slices.ContainsFunc(policy.DomainKeys(), func(key string) bool { return r.domains[key] == nil || !r.domains[key].known }) {
			r.pending = true
		} else {
			r.policies[name] = policy
		}
	}
}

// checkWatches: the view watches, of each key in use that the own Node carries,
// the nodes with its value, those of the value before until they are replaced,
// and nothing else.
func (r *reference) checkWatches(open []*fakeWatch) error {
	used := r.keysInUse()
	for key := range used {
		value, ok := r.own[key]
		if ok && watchOf(open, key, value) == nil {
			return fmt.Errorf("the nodes with %s=%s are not watched", key, value)
		}
	}
	for key, d := range r.domains {
		if d.inForce != nil && !slices.Contains(open, d.inForce) {
			return fmt.Errorf("the nodes with %s=%s are in force and not watched any more", key, d.inForce.value)
		}
	}
	for _, w := range open {
		d := r.domains[w.key]
		if !used[w.key] || d == nil || w != d.follows && w != d.inForce {
			return fmt.Errorf("the nodes with %s=%s are watched for nothing", w.key, w.value)
		}
	}
	return nil
}

func watchOf(open []*fakeWatch, key, value string) *fakeWatch {
	for _, w := range open {
		if w.key == key && w.value == value {
			return w
		}
	}
	return nil
}

// Label and Member make a reference the topology.Locality of the domains in force.
func (r *reference) Label(key string) (string, bool) {
	if d := r.domains[key]; d != nil && d.inForce != nil {
		return d.inForce.value, true
	}
	return "", false
}

func (r *reference) Member(key, nodeName string) bool {
	d := r.domains[key]
	return d != nil && d.inForce != nil && (nodeName == ownNode || d.inForce.members[nodeName])
}

// byLabels is the topology.Locality by the labels of all nodes.
type byLabels struct {
	own   map[string]string
	nodes map[string]map[string]string
}

// Label implements topology.Locality.
func (b byLabels) Label(key string) (string, bool) {
	value, ok := b.own[key]
	return value, ok
}

// Member implements topology.Locality.
func (b byLabels) Member(key, nodeName string) bool {
	own, ok := b.own[key]
	value, has := b.nodes[nodeName][key]
	return ok && (nodeName == ownNode || has && value == own)
}
