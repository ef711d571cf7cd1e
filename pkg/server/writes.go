// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy"
	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// writes tells the proxy what it must know of the served objects to let writes
// to them through.
type writes struct {
	gate    *gate
	view    *watchcache.View
	mirrors map[schema.GroupResource]*watchcache.Mirror
}

var _ proxy.View = &writes{}

// Differs implements proxy.View. As long as the view, or the object in it, cannot
// be shown, nobody can tell what a copy of it lacks, for an earlier process may have
// given it out.
func (w *writes) Differs(ctx context.Context, gr schema.GroupResource, namespace, name string) (bool, error) {
	if err := w.gate.pass(ctx, gr); err != nil {
		return false, notReady(err)
	}
	differs, shown := w.view.Differs(gr, namespace, name)
	if !shown {
		return false, notReady(errNotShown)
	}
	return differs, nil
}

var errNotShown = errors.New("the nodes that share the labels of this node are not known yet")

// UpstreamRevision implements proxy.View.
func (w *writes) UpstreamRevision(gr schema.GroupResource, namespace, name, revision string, of proxy.Carries) (string, bool) {
	return w.view.UpstreamRevision(gr, namespace, name, revision, watchcache.Carries(of))
}

// Refresh implements proxy.View.
func (w *writes) Refresh(gr schema.GroupResource, namespace, name, revision, upstream string) string {
	return w.view.Refresh(gr, namespace, name, revision, upstream)
}

// ViewRevision implements proxy.View.
func (w *writes) ViewRevision(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) (string, bool) {
	if mirror, ok := w.mirrors[gr]; ok {
		return revision, mirror.AwaitRevision(ctx, revision)
	}
	return w.view.ViewRevision(ctx, gr, namespace, name, revision)
}

// AwaitChange implements proxy.View.
func (w *writes) AwaitChange(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) {
	w.await(ctx, gr, namespace, name, func(known watchcache.Upstream) bool { return known.Revision != revision })
}

// AwaitPresence implements proxy.View.
func (w *writes) AwaitPresence(ctx context.Context, gr schema.GroupResource, namespace, name string) {
	w.await(ctx, gr, namespace, name, func(known watchcache.Upstream) bool { return known.Exists })
}

// AwaitAbsence implements proxy.View.
func (w *writes) AwaitAbsence(ctx context.Context, gr schema.GroupResource, namespace, name, uid string) {
	w.await(ctx, gr, namespace, name, func(known watchcache.Upstream) bool {
		return !known.Exists || known.Deleting || uid != "" && known.UID != uid
	})
}

// AwaitEnd implements proxy.View.
func (w *writes) AwaitEnd(ctx context.Context, gr schema.GroupResource, namespace, name, uid string) {
	w.await(ctx, gr, namespace, name, func(known watchcache.Upstream) bool {
		if uid == "" {
			uid = known.UID
		}
		return !known.Exists || known.UID != uid
	})
}

func (w *writes) await(ctx context.Context, gr schema.GroupResource, namespace, name string, until func(watchcache.Upstream) bool) {
	if mirror, ok := w.mirrors[gr]; ok {
		mirror.Await(ctx, name, until)
		return
	}
	w.view.Await(ctx, gr, namespace, name, until)
}
