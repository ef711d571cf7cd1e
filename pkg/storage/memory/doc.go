// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory is a storage.Interface that keeps one resource in memory: an MVCC log with a bounded watch history.
//
// A Store holds the current objects in an ordered copy-on-write tree, and the changes that led there in a log. Every
// change has its own revision from one counter per log, so the revision of an idle resource stands still. A LIST of the
// present reads a clone of the tree; a LIST of the past rewinds a clone by the log. A watch reads the log at its own
// cursor.
//
// # Object mode
//
// Without Config.Codec the log holds objects, not bytes. An object in the log is immutable from the moment it was
// committed:
//   - Create and GuaranteedUpdate copy in, Get, GetList and the out parameters copy out;
//   - Apply and Reset take ownership of the objects they are given and write nothing but their resourceVersion;
//   - events of a watch carry the objects of the log themselves, shared with every other watch and with the history. Who
//     receives them must not write to them. The stock cacher keeps to that, and this is what spares a copy per watcher.
//
// # Codec mode
//
// With Config.Codec the log holds bytes, as etcd does: encoded without a resourceVersion, then transformed with the key as
// authenticated data. A codec may convert, prune and default, so custom resources need this mode.
//   - Every write encodes, Apply and Reset included; the objects given to it are neither kept nor written to.
//   - Every read decodes an object of its own, stamped with the revision of its entry: Get, each object of a LIST, and
//     each event for each watch. A watch with a selector decodes the version before a change too. The stock cacher is
//     meant to be the one watch.
//   - An update that encodes to the bytes that are there is not written, unless the transformer calls them stale.
//   - A suggestion for an update or a deletion is used if it has the revision of the present version, and spares decoding. A
//     revision that a Reset may have brought back does not count.
//   - What cannot be read fails with an internal error, ends a watch with an ERROR event, and stays. With the feature gate
//     AllowUnsafeMalformedObjectDeletion, Get and GetList say that it is corrupt, and Delete may be told to remove it.
//
// Several Stores may share a log (Store.As), each with its own codec, as the versions of a custom resource need it.
//
// Bytes in the log do not change either. Decoders copy what they keep; a transformer must not write to what it is given.
//
// Everything else - revisions, history, watches, snapshots, time to live - is the same in both modes. Type entry holds a
// value in either form; read.go and draft.go turn it into objects and back, and nothing else knows the form.
//
// # Watches
//
// Watches pull: a writer appends to the log, closes one channel to wake whoever sleeps, and is done. It never sends to a
// watch and never waits for one. A watch that is read so slowly that the window passes its cursor ends with an ERROR
// event, 410 Expired. So a watch from revision R delivers each change after R once and in order, or says that it cannot.
//
// # Locks
//
// There is one lock, log.mu. It guards the tree, the log, the revision and what belongs to them. No code of a caller
// (codecs, transformers, predicates, update and validation functions) runs under it, nothing is sent under it,
// and no step under it takes longer than what it commits: compaction forgets whole chunks of the log by moving an index.
// What was read under the lock may be used after it, because entries, chunks and clones do not change once published.
package memory
