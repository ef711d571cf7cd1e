// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// Upstream is what the view knows of an object upstream.
type Upstream struct {
	// Exists: upstream had the object, when its last event came.
	Exists bool
	// UID and Revision are upstream's.
	UID, Revision string
	// Deleting: upstream waits for finalizers.
	Deleting bool
}

// Differs reports whether the view shows other endpoints of an object than
// upstream has: one that was read here must not be written back. Only
// EndpointSlices and Endpoints can differ. An object that waits for the nodes of
// its topology keys is not shown yet; one that upstream does not have counts as
// shown.
func (v *View) Differs(gr schema.GroupResource, namespace, name string) (differs, shown bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	raw, view := v.metadataLocked(gr, key)
	return v.differsLocked(gr, key), raw == nil || view != nil
}

func (v *View) differsLocked(gr schema.GroupResource, name types.NamespacedName) bool {
	switch gr {
	case EndpointSlices:
		e := v.slices[name]
		return e != nil && !slicesEqual(e.raw, v.selectSliceLocked(e))
	case Endpoints:
		e := v.endpoints[name]
		return e != nil && !endpointsEqual(e.raw, v.selectEndpointsLocked(e))
	}
	return false
}

// Carries is what a write carries of what was read at its precondition.
type Carries struct {
	// Endpoints: that which may differ.
	Endpoints bool
	// Metadata: the fields of the metadata that are not compared, managedFields
	// above all.
	Metadata bool
}

// UpstreamRevision returns the revision of an object upstream that a revision of
// the view stands for: the newest one whose view is equal. False if it stands for
// none any more, because the view of the object has changed since, or for none of
// this process.
//
// Upstream's object may have changed in the fields that are not compared. For a
// write that carries them it stands for none then, or the managers of its fields
// would be written back as they were: Refresh shows the object anew, and whoever
// tries again gets it. Nor does it for one that carries endpoints which differ.
func (v *View) UpstreamRevision(gr schema.GroupResource, namespace, name, revision string, of Carries) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	raw, view := v.metadataLocked(gr, key)
	if raw == nil || view == nil || view.ResourceVersion != revision ||
		of.Endpoints && v.differsLocked(gr, key) || of.Metadata && !uncomparedEqual(raw, view) {
		return "", false
	}
	return raw.ResourceVersion, true
}

// Refresh shows an object anew, under another revision, if the view has it at this
// one, upstream at that one (an empty one stands for any), and they differ in the
// fields that are not compared. It returns the new revision, or this one if nothing
// was to do.
func (v *View) Refresh(gr schema.GroupResource, namespace, name, revision, upstream string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	raw, view := v.metadataLocked(gr, key)
	if raw == nil || view == nil || uncomparedEqual(raw, view) ||
		revision != "" && view.ResourceVersion != revision || upstream != "" && raw.ResourceVersion != upstream {
		return revision
	}
	v.refreshLocked(gr, key)
	v.finishLocked()
	_, view = v.metadataLocked(gr, key)
	return view.ResourceVersion
}

// refreshLocked writes the view of an object though nothing has changed in it that
// is compared. An answer of upstream that shows more than the view does must not get
// the revision.
func (v *View) refreshLocked(gr schema.GroupResource, key types.NamespacedName) {
	raw, _ := v.metadataLocked(gr, key)
	from := cause{name: key}
	if !v.differsLocked(gr, key) {
		from.upstream = raw.ResourceVersion
	}
	switch gr {
	case Services:
		s := v.services[key]
		view := *s.raw
		s.view, s.shown = &view, s.raw
		v.servicesOut.put(from, memory.Change{Object: &view})
	case EndpointSlices:
		e := v.slices[key]
		view := *v.selectSliceLocked(e)
		e.view, e.shown = &view, e.raw
		v.slicesOut.put(from, memory.Change{Object: &view})
	case Endpoints:
		e := v.endpoints[key]
		view := *v.selectEndpointsLocked(e)
		e.view = &view
		v.endpointsOut.put(from, memory.Change{Object: &view})
	}
}

// ViewRevision returns the revision of the view that stands for a revision of an
// object upstream, be it of its deletion. It waits until the view has come to it,
// or ctx ends. False if none can be told: ctx has ended, or the view does not
// follow the resource, or it shows something else than upstream has at that
// revision.
func (v *View) ViewRevision(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) (string, bool) {
	want, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		return "", false
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var found string
	v.wait(ctx, func() bool {
		out := v.outboxLocked(gr)
		if out == nil {
			return true
		}
		raw, view := v.metadataLocked(gr, key)
		current, newest := uint64(0), raw != nil
		if newest {
			if current, err = strconv.ParseUint(raw.ResourceVersion, 10, 64); err != nil {
				return true
			}
		}
		if newest && current == want {
			if view == nil {
				return false // it waits for the nodes of its topology keys
			}
			if !v.differsLocked(gr, key) {
				found = view.ResourceVersion
			}
			return true
		}
		var ok bool
		found, ok = out.recent.find(cause{key, revision})
		return ok || current > want
	})
	return found, found != ""
}

// Await waits until what the view knows of an object upstream satisfies until, or
// ctx ends, and reports whether it does. It returns true at once if the view does
// not follow the resource.
func (v *View) Await(ctx context.Context, gr schema.GroupResource, namespace, name string, until func(Upstream) bool) bool {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	return v.wait(ctx, func() bool {
		if v.outboxLocked(gr) == nil {
			return true
		}
		raw, view := v.metadataLocked(gr, key)
		if raw == nil {
			return until(Upstream{})
		}
		// An object that the view does not show yet is not there for a reader.
		return view != nil && until(Upstream{
			Exists: true, UID: string(raw.UID), Revision: raw.ResourceVersion, Deleting: raw.DeletionTimestamp != nil,
		})
	})
}

// wait calls done, with the lock held, after each event until it returns true, or
// ctx ends: then it returns false.
func (v *View) wait(ctx context.Context, done func() bool) bool {
	for {
		v.mu.Lock()
		if done() {
			v.mu.Unlock()
			return true
		}
		changed := v.changed.waitLocked()
		v.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// outboxLocked returns the outbox of a resource that has its first view, else nil.
func (v *View) outboxLocked(gr schema.GroupResource) *outbox {
	switch {
	case gr == Services && v.published:
		return &v.servicesOut
	case gr == EndpointSlices && v.published:
		return &v.slicesOut
	case gr == Endpoints && v.publishedEndpoints:
		return &v.endpointsOut
	}
	return nil
}

// metadataLocked returns the metadata of an object as upstream has it, and as the
// view shows it; nil where there is none.
func (v *View) metadataLocked(gr schema.GroupResource, name types.NamespacedName) (raw, view *metav1.ObjectMeta) {
	switch gr {
	case Services:
		if s := v.services[name]; s != nil && s.raw != nil {
			raw = &s.raw.ObjectMeta
			if s.view != nil {
				view = &s.view.ObjectMeta
			}
		}
	case EndpointSlices:
		if e := v.slices[name]; e != nil {
			raw = &e.raw.ObjectMeta
			if e.view != nil {
				view = &e.view.ObjectMeta
			}
		}
	case Endpoints:
		if e := v.endpoints[name]; e != nil {
			raw = &e.raw.ObjectMeta
			if e.view != nil {
				view = &e.view.ObjectMeta
			}
		}
	}
	return raw, view
}
