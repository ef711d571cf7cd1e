// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchcache derives the node's view from upstream's objects.
//
// Upstream's Services, EndpointSlices, Endpoints and Nodes go in as events; the
// derived objects come out as changes of the memory stores below the stock
// watch caches, each with a revision of the view's own counter. Every event is
// processed to its end under one lock, so events are totally ordered, and the
// stores never make a writer wait for a reader.
//
// The invariant: when no event is being processed,
//
//	view == topology.Select(policy, locality, raw)
//
// for every object, but for the fields that slicesEqual ignores. A change that
// leaves the view equal is not written at all, so what happens in other node
// units reaches no client of this node.
//
// A View knows nothing of the network. Feed connects it to an upstream.
package watchcache
