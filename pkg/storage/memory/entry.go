// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"github.com/google/btree"

	"k8s.io/apimachinery/pkg/runtime"
)

// entry is one version of one key. It never changes after it was committed. Its value is in one of two forms, see read.go
// and draft.go, which turn it into objects and back.
type entry struct {
	key      string
	revision uint64
	// deleted marks the version that a deletion leaves in the log; it carries the last content and the revision of the deletion.
	deleted bool
	// expires is when the key goes away by itself, in Unix nanoseconds; 0: never.
	expires int64
	// object is the value in object mode, with its resourceVersion; nil in codec mode.
	object runtime.Object
	// data is the value in codec mode: encoded, without a resourceVersion, and transformed.
	data []byte
}

// stamp gives e, which is not committed yet, its revision.
func (e *entry) stamp(revision uint64) error {
	e.revision = revision
	if e.object == nil {
		return nil // the reader stamps what it decodes
	}
	if stamped, err := versioner.ObjectResourceVersion(e.object); err == nil && stamped == revision {
		return nil
	}
	return versioner.UpdateObject(e.object, revision)
}

// tombstone is the version that deleting e at revision leaves.
func (e *entry) tombstone(revision uint64) (*entry, error) {
	gone := &entry{key: e.key, revision: revision, deleted: true, data: e.data}
	if e.object == nil {
		return gone, nil
	}
	var err error
	if gone.object, err = atRevision(e.object, revision); err != nil {
		return nil, fmt.Errorf("deleting key %q: %w", e.key, err)
	}
	return gone, nil
}

// size is the number of bytes stored, or in object mode an estimate of what an encoded object would take.
func (e *entry) size() int {
	if e.object == nil {
		return len(e.data)
	}
	return encodedSize(e.object)
}

// tree is ordered by key. Clone makes a copy in constant time; the nodes are copied by whoever writes first.
type tree = btree.BTreeG[*entry]

// treeDegree makes nodes of up to 63 pointers, half a kilobyte: that is what the first write after a Clone copies per
// level, and a resource of 5,000 objects has three levels.
const treeDegree = 32

func newTree() *tree {
	return btree.NewG(treeDegree, func(a, b *entry) bool { return a.key < b.key })
}
