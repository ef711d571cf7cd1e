// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// labelingCodec shows in what it decodes who decoded it.
type labelingCodec struct {
	runtime.Codec
	label string
}

func (c labelingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if pod, ok := object.(*example.Pod); ok {
		pod.Labels = map[string]string{"decoder": c.label}
	}
	return object, kind, err
}

func TestStoresShareALog(t *testing.T) {
	first := newCodecStore(t)
	second, err := first.As(Form{
		NewFunc:     first.newFunc,
		Codec:       labelingCodec{first.codec.format, "second"},
		Transformer: storagetesting.NewPrefixTransformer([]byte(storedPrefix), false),
	})
	if err != nil {
		t.Fatal(err)
	}
	open := func(store *Store) watch.Interface {
		w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	watches := map[string]watch.Interface{"": open(first), "second": open(second)}

	created, updated := &example.Pod{}, &example.Pod{}
	if err := first.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), created, 0); err != nil {
		t.Fatal(err)
	}
	suggestion := created.DeepCopy()
	err = second.GuaranteedUpdate(t.Context(), "/pods/ns/a", updated, false, nil,
		storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
			object.(*example.Pod).Spec.NodeName = "b"
			return object, nil
		}), suggestion)
	if err != nil {
		t.Fatal(err)
	}
	for label, w := range watches {
		for i, want := range []*example.Pod{created, updated} {
			got := (<-w.ResultChan()).Object.(*example.Pod)
			if got.ResourceVersion != want.ResourceVersion || got.Labels["decoder"] != label {
				t.Errorf("event %d of %q: decoded by %q at %s, want %s", i, label, got.Labels["decoder"], got.ResourceVersion, want.ResourceVersion)
			}
		}
	}
	for _, store := range []*Store{first, second} {
		if err := store.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }); err != nil {
			t.Errorf("each has a watch cache of its own: %v", err)
		}
	}
	if diff := cmp.Diff(first.Revision(), second.Revision()); diff != "" {
		t.Error(diff)
	}

	second.Stop()
	for label, w := range watches {
		if _, open := <-w.ResultChan(); open {
			t.Errorf("the watch of %q has not ended", label)
		}
	}
	if first.ReadinessCheck() == nil {
		t.Error("a store without its log is ready")
	}
}

func TestObjectModeHasOneForm(t *testing.T) {
	inObjects, inBytes := newTestStore(t), newCodecStore(t)
	form := Form{NewFunc: inBytes.newFunc, Codec: inBytes.codec.format}
	if _, err := inObjects.As(form); err == nil {
		t.Error("objects are read by a codec")
	}
	form.Codec = nil
	if _, err := inBytes.As(form); err == nil {
		t.Error("bytes are read without a codec")
	}
	if _, err := inBytes.As(Form{Codec: inBytes.codec.format}); err == nil {
		t.Error("a form without NewFunc")
	}
}
