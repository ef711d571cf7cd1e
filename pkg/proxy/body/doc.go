// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body reads and edits the bodies of writes, and of the answers to them, without decoding them into types.
//
// Objects that are read from a node carry revisions of its view, which mean nothing to the upstream API server. A write that
// names one as a precondition goes upstream with the revision that it stands for, and the answer comes back with one of the
// view. Only the bytes of that value change: whatever else the body holds (unknown fields, duplicate keys, white space, the
// order of keys) is for upstream, and for its validation, to see as it was sent.
//
// Clients that nobody has authorized yet send these bodies. What is done with them costs time linear in their size, and at
// most a small multiple of their memory; see maxCostlyBody for the encodings that cannot be read so.
package body
