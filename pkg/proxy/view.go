// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Carries is what a write carries, or may carry, of what was read at its precondition.
type Carries struct {
	// Endpoints: what the view may lack or replace.
	Endpoints bool
	// Metadata: what the view does not follow as long as nothing else changes, managedFields above all.
	Metadata bool
}

// View is what the proxy must know of the objects that this node serves, so that a write which goes upstream means there
// what it meant to the client, and a read that follows shows it. Called from many goroutines at once. What waits ends with
// its context, and at once where the resource is not followed.
type View interface {
	// Differs reports whether the view of the object lacks or replaces something of the object upstream. The error is a
	// Status, for when that cannot be told yet.
	Differs(ctx context.Context, gr schema.GroupResource, namespace, name string) (bool, error)
	// UpstreamRevision returns the revision upstream that a revision of the view stands for, as the precondition of a write
	// that carries this; false if it stands for none, or for none any more.
	UpstreamRevision(gr schema.GroupResource, namespace, name, revision string, of Carries) (string, bool)
	// Refresh shows an object anew that the view has at this revision and upstream at that one (an empty one stands for any),
	// if the view has not followed all of upstream's metadata. It returns the new revision, or this one if nothing was to do.
	Refresh(gr schema.GroupResource, namespace, name, revision, upstream string) string
	// ViewRevision waits until the view has come to a revision of the object upstream, and returns the one that stands for it
	// in the view; false if none does.
	ViewRevision(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) (string, bool)
	// AwaitChange waits until the view knows of another revision of the object upstream than this one.
	AwaitChange(ctx context.Context, gr schema.GroupResource, namespace, name, revision string)
	// AwaitPresence waits until the view shows the object.
	AwaitPresence(ctx context.Context, gr schema.GroupResource, namespace, name string)
	// AwaitAbsence waits until the view does not show the object with this uid any more, or shows that it is being deleted.
	// An empty uid stands for every one.
	AwaitAbsence(ctx context.Context, gr schema.GroupResource, namespace, name, uid string)
	// AwaitEnd waits until the view does not show the object with this uid any more. An empty uid stands for that which the
	// object has in the view.
	AwaitEnd(ctx context.Context, gr schema.GroupResource, namespace, name, uid string)
}
