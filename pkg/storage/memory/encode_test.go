// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// pruningCodec drops a field in place before it encodes, as pruning a custom resource does.
type pruningCodec struct{ runtime.Codec }

func (c pruningCodec) Encode(object runtime.Object, w io.Writer) error {
	content := object.(*unstructured.Unstructured).Object
	unstructured.RemoveNestedField(content, "spec", "unknown")
	return c.Codec.Encode(object, w)
}

func TestCodecThatPrunesInPlaceDoesNotReachTheCaller(t *testing.T) {
	const key = "/example.com/widgets/ns/a"
	store := newWidgetStore(t)
	store.codec.format = pruningCodec{store.codec.format}
	given := func() *unstructured.Unstructured {
		object := widget("a", int64(store.Revision())) // another content each time
		object.Object["spec"].(map[string]any)["unknown"] = "value"
		return object
	}
	for _, test := range []struct {
		name  string
		write func(*unstructured.Unstructured) error
	}{
		{"Create", func(object *unstructured.Unstructured) error { return store.Create(t.Context(), key, object, nil, 0) }},
		{"GuaranteedUpdate", func(object *unstructured.Unstructured) error {
			return store.GuaranteedUpdate(t.Context(), key, &unstructured.Unstructured{}, false, nil, updateTo(object, nil), nil)
		}},
		{"Apply", func(object *unstructured.Unstructured) error {
			_, err := store.Apply(Change{Key: key, Object: object})
			return err
		}},
		{"Reset", func(object *unstructured.Unstructured) error {
			store.Reset(store.Revision()+1, map[string]runtime.Object{key: object})
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			object, want := given(), given()
			if err := test.write(object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, object); diff != "" {
				t.Errorf("the object was written to (-want +got):\n%s", diff)
			}
			unstructured.RemoveNestedField(want.Object, "spec", "unknown")
			want.SetResourceVersion(fmt.Sprint(store.Revision()))
			got := &unstructured.Unstructured{}
			if err := store.Get(t.Context(), key, storage.GetOptions{}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}
