// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/internal/mutant"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// slice is an EndpointSlice, as upstream has it and as the view shows it.
type slice struct {
	raw  *discoveryv1.EndpointSlice
	view *discoveryv1.EndpointSlice
	// shown is the raw object that view shows: what is not selected from need
	// not be compared again as long as it is the same.
	shown *discoveryv1.EndpointSlice
	// service is the entry of the Service named in the label; nil without one.
	service *service
	touched bool
	// As those of a service.
	fresh     bool
	deletedAt string
}

// SetEndpointSlice tells that an EndpointSlice was added or changed upstream.
func (v *View) SetEndpointSlice(raw *discoveryv1.EndpointSlice) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.setSliceLocked(raw)
}

// DeleteEndpointSlice tells that an EndpointSlice was deleted upstream, and at
// which revision if that is known.
func (v *View) DeleteEndpointSlice(name types.NamespacedName, revision string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.deleteSliceLocked(name, revision)
}

// ReplaceEndpointSlices tells all EndpointSlices at once, like ReplaceServices.
func (v *View) ReplaceEndpointSlices(all []*discoveryv1.EndpointSlice) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.slicesOut.recent.forget()
	v.synced.EndpointSlices = true
	present := make(map[types.NamespacedName]struct{}, len(all))
	for _, raw := range all {
		present[nameOf(&raw.ObjectMeta)] = struct{}{}
		v.setSliceLocked(raw)
	}
	for name := range v.slices {
		if _, ok := present[name]; !ok {
			if mutant.LostTombstone {
				delete(v.slices, name)
				continue
			}
			v.deleteSliceLocked(name, "")
		}
	}
}

func (v *View) setSliceLocked(raw *discoveryv1.EndpointSlice) {
	name := nameOf(&raw.ObjectMeta)
	e := v.slices[name]
	if e == nil {
		e = &slice{}
		v.slices[name] = e
	}
	e.fresh = e.fresh || e.raw == nil || e.raw.ResourceVersion != raw.ResourceVersion
	e.raw = raw
	var owner *service
	if serviceName, ok := serviceOf(raw); ok {
		owner = v.serviceEntryLocked(serviceName)
	}
	if former := e.service; former != owner {
		e.service = owner
		if owner != nil {
			owner.slices[name] = e
		}
		v.leaveServiceLocked(former, name)
	}
	v.sliceChangedLocked(owner)
	v.touchSliceLocked(e)
}

func (v *View) deleteSliceLocked(name types.NamespacedName, revision string) {
	e := v.slices[name]
	if e == nil {
		return
	}
	delete(v.slices, name)
	e.raw, e.deletedAt = nil, revision
	v.touchSliceLocked(e)
	v.leaveServiceLocked(e.service, name)
}

func (v *View) leaveServiceLocked(s *service, slice types.NamespacedName) {
	if s == nil {
		return
	}
	delete(s.slices, slice)
	v.sliceChangedLocked(s)
	v.forgetServiceLocked(s)
}

// sliceChangedLocked looks after the other slices of the Service: where the
// decision is one for all of them, one slice can change it.
func (v *View) sliceChangedLocked(s *service) {
	switch {
	case s == nil:
	case s.name == kubernetesService:
		v.reselectLocked(s)
	case s.policy.Mode == topology.Ordered:
		v.recheckLocked(s)
	}
}

func (v *View) touchSliceLocked(e *slice) {
	if !e.touched {
		e.touched = true
		v.touchedSlices = append(v.touchedSlices, e)
	}
}

func (v *View) emitSliceLocked(e *slice) {
	if !v.published {
		return
	}
	if e.raw == nil {
		if e.view != nil {
			name := nameOf(&e.view.ObjectMeta)
			e.view = nil
			v.slicesOut.put(cause{name, e.deletedAt}, memory.Change{})
		}
		return
	}
	if e.view == nil && e.service != nil && e.service.waits() {
		return
	}
	selected := v.selectSliceLocked(e)
	same := e.view != nil && e.shows(selected)
	e.shown = e.raw
	from := cause{name: nameOf(&e.raw.ObjectMeta)}
	if e.fresh {
		e.fresh = false
		if slicesEqual(e.raw, selected) {
			from.upstream = e.raw.ResourceVersion
		}
	}
	if same {
		v.slicesOut.same(from, &e.raw.ObjectMeta, &e.view.ObjectMeta)
		return
	}
	view := *selected
	e.view = &view
	v.slicesOut.put(from, memory.Change{Object: &view})
}

// shows reports whether the view of the slice equals what is selected now. Only
// the endpoints are selected from, but of default/kubernetes.
func (e *slice) shows(selected *discoveryv1.EndpointSlice) bool {
	if e.shown == e.raw && (e.service == nil || e.service.name != kubernetesService) {
		return endpointsListEqual(e.view.Endpoints, selected.Endpoints)
	}
	return slicesEqual(e.view, selected)
}

func (v *View) selectSliceLocked(e *slice) *discoveryv1.EndpointSlice {
	if e.service == nil {
		return e.raw
	}
	if e.service.name == kubernetesService {
		if local := v.localEndpointLocked(); local != nil {
			if first := firstOfFamily(e.service, local.AddressType()); first != nil {
				return local.Slice(e.raw, e == first)
			}
		}
	}
	return e.service.selection.Slice(locality{v}, e.raw)
}

// firstOfFamily returns the slice of the Service with that address type whose
// name sorts first; nil without one.
func firstOfFamily(s *service, family discoveryv1.AddressType) *slice {
	var first *slice
	for _, e := range s.slices {
		if e.raw != nil && e.raw.AddressType == family && (first == nil || e.raw.Name < first.raw.Name) {
			first = e
		}
	}
	return first
}
