// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology decides which endpoints of a Service a node may see.
//
// A Service names node label keys in the annotation topologyKeys. An endpoint
// stays in the view of this node if its own node carries one of those keys with
// the value that this node has: the nodes that share a value form a node unit,
// and the Service is closed over it.
//
// The package is pure. It reads the annotations of a Service (ParsePolicy),
// decides once per Service (Select) and filters objects by that decision
// (Selection.Slice, Selection.Endpoints). What it must know about nodes comes
// through Locality. It never changes an object that it is given, and what it
// returns shares everything with the input that it did not have to change; all
// objects are therefore to be treated as immutable. All functions may be called
// concurrently if the Locality allows it.
//
// docs/topology.md tells users what the annotations mean.
package topology
