// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// atRevision returns a shallow copy of object with another resourceVersion. Everything but the metadata's own fields is
// shared with the original, which is not written to.
func atRevision(object runtime.Object, revision uint64) (runtime.Object, error) {
	out := shallowCopy(object)
	return out, versioner.UpdateObject(out, revision)
}

// shallowCopy copies as much as writing to the metadata's own fields needs.
func shallowCopy(object runtime.Object) runtime.Object {
	if typed, ok := object.(*unstructured.Unstructured); ok {
		return shallowUnstructured(typed)
	}
	value := reflect.ValueOf(object)
	if _, ok := object.(runtime.Unstructured); ok || value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return object.DeepCopyObject()
	}
	shallow := reflect.New(value.Type().Elem())
	shallow.Elem().Set(value.Elem())
	return shallow.Interface().(runtime.Object)
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

// assign sets *out to *object.
func assign(key string, out, object runtime.Object) error {
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("reading key %q: need a pointer to an object, got %T", key, out)
	}
	source := reflect.ValueOf(object)
	if source.Type() != target.Type() {
		return fmt.Errorf("reading key %q: the stored object is a %T, not a %T", key, object, out)
	}
	target.Elem().Set(source.Elem())
	return nil
}
