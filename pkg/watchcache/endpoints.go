// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// endpoints is an Endpoints object, as upstream has it and as the view shows it.
type endpoints struct {
	name types.NamespacedName
	raw  *corev1.Endpoints
	view *corev1.Endpoints

	touched bool
	// As those of a service.
	fresh     bool
	deletedAt string
}

// SetEndpoints tells that an Endpoints object was added or changed upstream.
func (v *View) SetEndpoints(raw *corev1.Endpoints) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.setEndpointsLocked(raw)
}

// DeleteEndpoints tells that an Endpoints object was deleted upstream, and at
// which revision if that is known.
func (v *View) DeleteEndpoints(name types.NamespacedName, revision string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.deleteEndpointsLocked(name, revision)
}

// ReplaceEndpoints tells all Endpoints objects at once, like ReplaceServices.
func (v *View) ReplaceEndpoints(all []*corev1.Endpoints) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.endpointsOut.recent.forget()
	v.synced.Endpoints = true
	present := make(map[types.NamespacedName]struct{}, len(all))
	for _, raw := range all {
		present[nameOf(&raw.ObjectMeta)] = struct{}{}
		v.setEndpointsLocked(raw)
	}
	for name := range v.endpoints {
		if _, ok := present[name]; !ok {
			v.deleteEndpointsLocked(name, "")
		}
	}
}

// SetKubernetesAnnotations tells the annotations of the Endpoints object
// default/kubernetes, nil if it has none or is not there. They are told apart
// from the object because they also change its EndpointSlice, which is followed
// on every node.
func (v *View) SetKubernetesAnnotations(annotations map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.finishLocked()
	v.synced.LocalEndpoint = true
	local, err := topology.ParseLocalEndpoint(annotations)
	message := ""
	if err != nil {
		message = err.Error()
	}
	if message != "" && message != v.annotatedError {
		v.logger.Info("Malformed local endpoint annotation, default/kubernetes is left as upstream has it", "err", err)
	}
	v.annotatedError = message
	if (local == nil) == (v.annotated == nil) && (local == nil || *local == *v.annotated) {
		return
	}
	v.annotated = local
	if s := v.services[kubernetesService]; s != nil {
		v.reselectLocked(s)
		return
	}
	v.touchEndpointsOfLocked(kubernetesService)
}

func (v *View) localEndpointLocked() *topology.LocalEndpoint {
	if v.localEndpoint != nil {
		return v.localEndpoint
	}
	return v.annotated
}

func (v *View) setEndpointsLocked(raw *corev1.Endpoints) {
	name := nameOf(&raw.ObjectMeta)
	e := v.endpoints[name]
	if e == nil {
		e = &endpoints{name: name}
		v.endpoints[name] = e
	}
	e.fresh = e.fresh || e.raw == nil || e.raw.ResourceVersion != raw.ResourceVersion
	e.raw = raw
	v.touchEndpointsLocked(e)
}

func (v *View) deleteEndpointsLocked(name types.NamespacedName, revision string) {
	e := v.endpoints[name]
	if e == nil {
		return
	}
	delete(v.endpoints, name)
	e.raw, e.deletedAt = nil, revision
	v.touchEndpointsLocked(e)
}

func (v *View) touchEndpointsOfLocked(name types.NamespacedName) {
	if e := v.endpoints[name]; e != nil {
		v.touchEndpointsLocked(e)
	}
}

func (v *View) touchEndpointsLocked(e *endpoints) {
	if !e.touched {
		e.touched = true
		v.touchedEndpoints = append(v.touchedEndpoints, e)
	}
}

func (v *View) emitEndpointsLocked(e *endpoints) {
	if !v.publishedEndpoints {
		return
	}
	if e.raw == nil {
		if e.view != nil {
			e.view = nil
			v.endpointsOut.put(cause{e.name, e.deletedAt}, memory.Change{})
		}
		return
	}
	if s := v.services[e.name]; e.view == nil && s != nil && s.waits() {
		return
	}
	selected := v.selectEndpointsLocked(e)
	from := cause{name: e.name}
	if e.fresh {
		e.fresh = false
		if endpointsEqual(e.raw, selected) {
			from.upstream = e.raw.ResourceVersion
		}
	}
	if e.view != nil && endpointsEqual(e.view, selected) {
		v.endpointsOut.same(from, &e.raw.ObjectMeta, &e.view.ObjectMeta)
		return
	}
	view := *selected
	e.view = &view
	v.endpointsOut.put(from, memory.Change{Object: &view})
}

func (v *View) selectEndpointsLocked(e *endpoints) *corev1.Endpoints {
	if e.name == kubernetesService {
		if local := v.localEndpointLocked(); local != nil {
			return local.Endpoints(e.raw)
		}
	}
	s := v.services[e.name]
	if s == nil {
		return e.raw
	}
	return s.selection.Endpoints(locality{v}, primaryFamily(s.raw), e.raw)
}
