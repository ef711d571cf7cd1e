// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"

	"github.com/google/btree"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// entry is one version of one key. It never changes after it was committed. It is the only type that knows in which form
// the log holds a value.
type entry struct {
	key      string
	revision uint64
	// deleted marks the version that a deletion leaves in the log; it carries the last content and the revision of the deletion.
	deleted bool
	// expires is when the key goes away by itself, in Unix nanoseconds; 0: never.
	expires int64
	object  runtime.Object
}

// shared returns the object itself; the caller must not write to it.
func (e *entry) shared() runtime.Object { return e.object }

// private returns a copy that the caller may write to.
func (e *entry) private() runtime.Object { return e.object.DeepCopyObject() }

// copyInto sets *out to a copy of the object.
func (e *entry) copyInto(out runtime.Object) error {
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("reading key %q: need a pointer to an object, got %T", e.key, out)
	}
	source := reflect.ValueOf(e.private())
	if source.Type() != target.Type() {
		return fmt.Errorf("reading key %q: the stored object is a %T, not a %T", e.key, e.object, out)
	}
	target.Elem().Set(source.Elem())
	return nil
}

// tombstone is the version that deleting e at revision leaves.
func (e *entry) tombstone(revision uint64) (*entry, error) {
	object, err := atRevision(e.object, revision)
	if err != nil {
		return nil, fmt.Errorf("deleting key %q: %w", e.key, err)
	}
	return &entry{key: e.key, revision: revision, deleted: true, object: object}, nil
}

// atRevision returns a shallow copy of object with another resourceVersion. Everything but the metadata's own fields is
// shared with the original, which is not written to.
func atRevision(object runtime.Object, revision uint64) (runtime.Object, error) {
	var out runtime.Object
	value := reflect.ValueOf(object)
	switch typed := object.(type) {
	case *unstructured.Unstructured:
		out = shallowUnstructured(typed)
	default:
		if _, ok := object.(runtime.Unstructured); ok || value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
			out = object.DeepCopyObject()
			break
		}
		shallow := reflect.New(value.Type().Elem())
		shallow.Elem().Set(value.Elem())
		out = shallow.Interface().(runtime.Object)
	}
	return out, versioner.UpdateObject(out, revision)
}

// shallowUnstructured copies the two maps on the way to metadata.resourceVersion.
func shallowUnstructured(in *unstructured.Unstructured) *unstructured.Unstructured {
	content := make(map[string]any, len(in.Object))
	for key, value := range in.Object {
		content[key] = value
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		fields := make(map[string]any, len(metadata)+1)
		for key, value := range metadata {
			fields[key] = value
		}
		content["metadata"] = fields
	}
	return &unstructured.Unstructured{Object: content}
}

// checkObject refuses what this store cannot version or hand out.
func (s *Store) checkObject(key string, object runtime.Object) error {
	if actual := reflect.TypeOf(object); actual != s.objectType {
		return fmt.Errorf("writing key %q: the store of %s holds %s, not %s", key, s.groupResource, s.objectType, actual)
	}
	if reflect.ValueOf(object).IsNil() {
		return fmt.Errorf("writing key %q: nil %s", key, s.objectType)
	}
	if _, err := meta.Accessor(object); err != nil {
		return fmt.Errorf("writing key %q: %w", key, err)
	}
	return nil
}

// tree is ordered by key. Clone makes a copy in constant time; the nodes are copied by whoever writes first.
type tree = btree.BTreeG[*entry]

// treeDegree makes nodes of up to 63 pointers, half a kilobyte: that is what the first write after a Clone copies per
// level, and a resource of 5,000 objects has three levels.
const treeDegree = 32

func newTree() *tree {
	return btree.NewG(treeDegree, func(a, b *entry) bool { return a.key < b.key })
}
