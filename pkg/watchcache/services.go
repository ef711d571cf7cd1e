// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// service is a Service and what hangs on it. An entry without raw stands for a
// Service that slices name but that is not there: they are not filtered.
type service struct {
	name types.NamespacedName
	raw  *corev1.Service
	view *corev1.Service
	// shown is the raw object that view shows.
	shown *corev1.Service

	// policy is in force; wanted, if not nil, comes into force as soon as the
	// domains of all its keys are known.
	policy    topology.Policy
	wanted    *topology.Policy
	malformed bool
	// settled: a policy of the Service has come into force. Before, there is
	// none that could hold until the domains are known, so objects that the
	// view does not have yet wait.
	settled   bool
	selection topology.Selection

	// fresh: upstream has changed the object, or deleted it at the revision
	// deletedAt, and the view has not come to that yet.
	fresh     bool
	deletedAt string

	// touched, recheck and reselect are set while an event is processed: the
	// Service is to be looked at; its decision may have changed; its decision,
	// or what it stands for, has changed.
	touched, recheck, reselect bool

	slices map[types.NamespacedName]*slice
}

// SetService tells that a Service was added or changed upstream.
func (v *View) SetService(raw *corev1.Service) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.setServiceLocked(raw)
}

// DeleteService tells that a Service was deleted upstream, and at which revision
// if that is known.
func (v *View) DeleteService(name types.NamespacedName, revision string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.deleteServiceLocked(name, revision)
}

// ReplaceServices tells all Services at once: first, and after each relist. The
// view changes by the difference of the contents.
func (v *View) ReplaceServices(all []*corev1.Service) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.servicesOut.recent.forget()
	v.synced.Services = true
	present := make(map[types.NamespacedName]struct{}, len(all))
	for _, raw := range all {
		present[nameOf(&raw.ObjectMeta)] = struct{}{}
		v.setServiceLocked(raw)
	}
	for name, s := range v.services {
		if _, ok := present[name]; !ok && s.raw != nil {
			v.deleteServiceLocked(name, "")
		}
	}
}

func (v *View) setServiceLocked(raw *corev1.Service) {
	s := v.serviceEntryLocked(nameOf(&raw.ObjectMeta))
	old := s.raw
	s.raw = raw
	s.fresh = s.fresh || old == nil || old.ResourceVersion != raw.ResourceVersion
	v.touchServiceLocked(s)
	if old == nil || !topologyAnnotationsEqual(old.Annotations, raw.Annotations) {
		v.parsePolicyLocked(s)
	}
	if primaryFamily(old) != primaryFamily(raw) {
		v.touchEndpointsOfLocked(s.name)
	}
}

func (v *View) deleteServiceLocked(name types.NamespacedName, revision string) {
	s := v.services[name]
	if s == nil || s.raw == nil {
		return
	}
	s.raw, s.settled, s.deletedAt = nil, false, revision
	v.touchServiceLocked(s)
	v.setMalformedLocked(s, nil)
	v.wantPolicyLocked(s, topology.Policy{})
	v.forgetServiceLocked(s)
}

func (v *View) serviceEntryLocked(name types.NamespacedName) *service {
	s := v.services[name]
	if s == nil {
		s = &service{name: name, slices: map[types.NamespacedName]*slice{}}
		v.services[name] = s
	}
	return s
}

func (v *View) forgetServiceLocked(s *service) {
	if s.raw == nil && len(s.slices) == 0 {
		delete(v.services, s.name)
	}
}

func topologyAnnotationsEqual(a, b map[string]string) bool {
	for _, key := range []string{topology.TopologyKeysAnnotation, topology.TopologyPolicyAnnotation} {
		x, inA := a[key]
		y, inB := b[key]
		if inA != inB || x != y {
			return false
		}
	}
	return true
}

func (v *View) parsePolicyLocked(s *service) {
	policy, err := topology.ParsePolicy(s.raw.Annotations)
	v.setMalformedLocked(s, err)
	v.wantPolicyLocked(s, policy)
}

// setMalformedLocked makes a malformed annotation visible: it is called once
// for each change of the annotations.
func (v *View) setMalformedLocked(s *service, err error) {
	if err != nil {
		v.logger.Info("Malformed topology annotation, the Service is not filtered", "service", klog.KRef(s.name.Namespace, s.name.Name), "err", err)
	}
	if s.malformed != (err != nil) {
		s.malformed = err != nil
		if s.malformed {
			v.malformed++
		} else {
			v.malformed--
		}
		malformedServices.Set(float64(v.malformed))
	}
}

// wantPolicyLocked asks for a policy. It comes into force at once if the
// domains of its keys are known.
func (v *View) wantPolicyLocked(s *service, policy topology.Policy) {
	before := s.keys()
	if s.wanted == nil && s.policy.Equal(policy) {
		v.settleLocked(s)
		return
	}
	s.wanted = &policy
	for _, key := range policy.DomainKeys() {
		v.useKeyLocked(key, s)
	}
	v.commitPolicyLocked(s)
	v.releaseKeysLocked(s, before)
}

// commitPolicyLocked puts the wanted policy into force if the domains of its
// keys are known, and reports whether it did.
func (v *View) commitPolicyLocked(s *service) bool {
	if s.wanted == nil {
		return false
	}
	for _, key := range s.wanted.DomainKeys() {
		if k := v.keys[key]; k == nil || !k.known {
			return false
		}
	}
	before := s.keys()
	s.policy, s.wanted = *s.wanted, nil
	v.settleLocked(s)
	v.reselectLocked(s)
	v.releaseKeysLocked(s, before)
	return true
}

// keys returns the topology keys that the policies of the Service name.
func (s *service) keys() []string {
	keys := s.policy.DomainKeys()
	if s.wanted != nil {
		keys = append(slices.Clip(keys), s.wanted.DomainKeys()...)
	}
	return keys
}

func (v *View) releaseKeysLocked(s *service, before []string) {
	now := s.keys()
	for _, key := range before {
		if !slices.Contains(now, key) {
			v.releaseKeyLocked(key, s)
		}
	}
}

// settleLocked notes that a policy of the Service is in force, and lets go of
// what has waited for that.
func (v *View) settleLocked(s *service) {
	if s.raw != nil && !s.settled {
		s.settled = true
		v.reselectLocked(s)
	}
}

// waits reports whether the first policy of the Service is still to come into
// force.
func (s *service) waits() bool { return s.raw != nil && !s.settled }

func (v *View) touchServiceLocked(s *service) {
	if !s.touched {
		s.touched = true
		v.touchedServices = append(v.touchedServices, s)
	}
}

// recheckLocked has the decision for a Service made anew at the end of the event.
func (v *View) recheckLocked(s *service) {
	s.recheck = true
	v.touchServiceLocked(s)
}

// reselectLocked likewise, and has all slices and the Endpoints of the Service
// brought in line with it even if it is the same: what it stands for has changed.
func (v *View) reselectLocked(s *service) {
	s.reselect = true
	v.recheckLocked(s)
}

// decideLocked makes the decision for a Service, once for all that the event
// has changed.
func (v *View) decideLocked(s *service) {
	recheck, reselect := s.recheck, s.reselect
	s.touched, s.recheck, s.reselect = false, false, false
	if !recheck {
		return
	}
	selection := v.selectLocked(s)
	if !reselect && selection.Equal(s.selection) {
		return
	}
	s.selection = selection
	for _, e := range s.slices {
		v.touchSliceLocked(e)
	}
	v.touchEndpointsOfLocked(s.name)
}

func (v *View) selectLocked(s *service) topology.Selection {
	var all []*discoveryv1.EndpointSlice
	if s.policy.Mode == topology.Ordered {
		// Only the ordered policy looks at the slices.
		all = make([]*discoveryv1.EndpointSlice, 0, len(s.slices))
		for _, e := range s.slices {
			all = append(all, e.raw)
		}
	}
	return topology.Select(s.policy, locality{v}, all)
}

func (v *View) emitServiceLocked(s *service) {
	switch {
	case !v.published:
	case s.raw == nil:
		if s.view != nil {
			s.view, s.shown = nil, nil
			v.servicesOut.put(cause{s.name, s.deletedAt}, memory.Change{})
		}
	default:
		from := cause{name: s.name}
		if s.fresh {
			s.fresh, from.upstream = false, s.raw.ResourceVersion
		}
		// It is the same object where only the decision for it was made anew.
		same := s.view != nil && (s.shown == s.raw || servicesEqual(s.view, s.raw))
		s.shown = s.raw
		if same {
			v.servicesOut.same(from, &s.raw.ObjectMeta, &s.view.ObjectMeta)
			return
		}
		view := *s.raw
		s.view = &view
		v.servicesOut.put(from, memory.Change{Object: &view})
	}
}
