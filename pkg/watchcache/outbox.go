// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// outbox collects the changes of one store within one event.
type outbox struct {
	store    *memory.Store
	resource string
	changes  []memory.Change
	// causes are the upstream revisions that the changes come from, one for each;
	// without a revision where upstream has not changed.
	causes []cause
	recent *recent
}

// cause is a revision of an object upstream.
type cause struct {
	name     types.NamespacedName
	upstream string
}

func newOutbox(store *memory.Store, resource string) outbox {
	return outbox{store: store, resource: resource, recent: newRecent()}
}

// put adds the change of one object, and gives it its storage key.
func (o *outbox) put(from cause, change memory.Change) {
	change.Key = "/" + o.resource + "/" + from.name.Namespace + "/" + from.name.Name
	o.changes = append(o.changes, change)
	o.causes = append(o.causes, from)
}

// same notes that upstream has changed an object and the view has not: the revision
// of the view stands for upstream's, unless an answer with that would show managed
// fields which the view does not.
func (o *outbox) same(from cause, raw, view *metav1.ObjectMeta) {
	if from.upstream == "" || !uncomparedEqual(raw, view) {
		return
	}
	if revision, err := strconv.ParseUint(view.ResourceVersion, 10, 64); err == nil {
		o.recent.add(from, revision)
	}
}

func (o *outbox) flush(logger klog.Logger, revisions *Revisions) {
	if len(o.changes) == 0 {
		return
	}
	revisions.Reserve(o.store.Revision() + uint64(len(o.changes)))
	if _, err := o.store.Apply(o.changes...); err != nil {
		// The store refuses only what breaks its contract.
		logger.Error(err, "Cannot write the view", "resource", o.resource)
	} else {
		for i, from := range o.causes {
			o.recent.add(from, o.changes[i].Revision)
		}
	}
	viewChanges.WithLabelValues(o.resource).Add(float64(len(o.changes)))
	clear(o.changes)
	clear(o.causes)
	o.changes, o.causes = o.changes[:0], o.causes[:0]
}
