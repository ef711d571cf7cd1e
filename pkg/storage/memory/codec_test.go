// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
)

func TestNewWantsACodecForATransformer(t *testing.T) {
	cfg := podConfig()
	cfg.Transformer = storagetesting.NewPrefixTransformer(nil, false)
	if store, err := New(cfg); err == nil {
		store.Stop()
		t.Error("a Transformer without a Codec is not refused")
	}
}

// storedData returns the bytes under key.
func storedData(t testing.TB, store *Store, key string) []byte {
	t.Helper()
	found, _ := store.lookup(key)
	if found == nil {
		t.Fatalf("nothing is stored under %q", key)
	}
	return found.data
}

func TestCodecStoresWhatItEncodes(t *testing.T) {
	const key = "/pods/ns/a"
	object := pod("ns", "a", "1")
	object.SelfLink = "/a/link"
	bare := object.DeepCopy()
	bare.SelfLink = ""
	encoded, err := runtime.Encode(podCodec(), bare)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte(storedPrefix), encoded...)
	as := func(object *example.Pod) storage.UpdateFunc {
		return storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return object, nil })
	}
	for _, test := range []struct {
		name  string
		write func(*Store) error
	}{
		{"Create", func(store *Store) error { return store.Create(t.Context(), key, object, nil, 0) }},
		{"GuaranteedUpdate", func(store *Store) error {
			object := object.DeepCopy()
			object.ResourceVersion = "77"
			if err := store.GuaranteedUpdate(t.Context(), key, &example.Pod{}, true, nil, as(object), nil); err != nil {
				return err
			}
			if object.ResourceVersion != "77" || object.SelfLink == "" {
				return errors.New("the object of the update function was written to")
			}
			return nil
		}},
		{"Apply", func(store *Store) error {
			_, err := store.Apply(Change{Key: key, Object: object.DeepCopy()})
			return err
		}},
		{"Reset", func(store *Store) error {
			object := object.DeepCopy()
			object.ResourceVersion = "40"
			store.Reset(50, map[string]runtime.Object{key: object})
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newCodecStore(t)
			if err := test.write(store); err != nil {
				t.Fatal(err)
			}
			if got := storedData(t, store, key); !bytes.Equal(got, want) {
				t.Errorf("stored %q, want %q", got, want)
			}
			out := &example.Pod{}
			if err := store.Get(t.Context(), key, storage.GetOptions{}, out); err != nil {
				t.Fatal(err)
			}
			found, _ := store.lookup(key)
			if out.ResourceVersion != fmt.Sprint(found.revision) {
				t.Errorf("read with resourceVersion %q, want %d", out.ResourceVersion, found.revision)
			}
			out.ResourceVersion = ""
			if diff := cmp.Diff(bare, out); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if object.SelfLink == "" {
				t.Error("the object was written to")
			}
		})
	}
}

func TestFailedEncodingLeavesNothing(t *testing.T) {
	for _, broken := range []string{"codec", "transformer"} {
		t.Run(broken, func(t *testing.T) {
			serial := &failingCodec{Codec: podCodec()}
			store := newCodecStore(t, func(cfg *Config) { cfg.Codec = serial })
			transformer := switchable(store)
			present := mustCreate(t, store, pod("ns", "a", "1"))
			before := storedData(t, store, "/pods/ns/a")
			w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: present.ResourceVersion})

			fail := func(fail bool) {
				if broken == "codec" {
					serial.encode.Store(fail)
				} else if fail {
					transformer.set(writeOnce{})
				} else {
					transformer.set(transformer.base)
				}
			}
			fail(true)
			out := &example.Pod{}
			err := store.Create(t.Context(), "/pods/ns/b", pod("ns", "b", "1"), out, 0)
			if !errors.Is(err, errInjected) {
				t.Errorf("Create: %v", err)
			}
			err = store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, updateTo(pod("ns", "a", "2"), nil), nil)
			if !errors.Is(err, errInjected) {
				t.Errorf("GuaranteedUpdate: %v", err)
			}
			_, err = store.Apply(Change{Key: "/pods/ns/a"}, Change{Key: "/pods/ns/c", Object: pod("ns", "c", "1")})
			if !errors.Is(err, errInjected) {
				t.Errorf("Apply: %v", err)
			}
			if diff := cmp.Diff(&example.Pod{}, out); diff != "" {
				t.Errorf("the output was written to:\n%s", diff)
			}
			if got := fmt.Sprint(store.Revision()); got != present.ResourceVersion {
				t.Errorf("the revision is %s, want %s", got, present.ResourceVersion)
			}
			if after := storedData(t, store, "/pods/ns/a"); !bytes.Equal(before, after) {
				t.Errorf("stored %q, want %q", after, before)
			}
			fail(false)
			if names, err := listPods(store, storage.Everything); err != nil || !cmp.Equal(names, []string{"a"}) {
				t.Errorf("LIST: %v, %v", names, err)
			}
			mustCreate(t, store, pod("ns", "last", "1"))
			expectEvents(t, w, fmt.Sprintf("ADDED last@%d=1", store.Revision()))
		})
	}
}

// writeOnce is a transformer that can read, and not write.
type writeOnce struct{}

func (writeOnce) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	return bytes.TrimPrefix(data, []byte(storedPrefix)), false, nil
}

func (writeOnce) TransformToStorage(context.Context, []byte, value.Context) ([]byte, error) {
	return nil, errInjected
}

// keyTransformer checks that what is read under a key was written under it.
type keyTransformer struct{}

func (keyTransformer) TransformToStorage(_ context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return append(append([]byte{}, dataCtx.AuthenticatedData()...), data...), nil
}

func (keyTransformer) TransformFromStorage(_ context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	plain, ok := bytes.CutPrefix(data, dataCtx.AuthenticatedData())
	if !ok {
		return nil, false, errInjected
	}
	return plain, false, nil
}

func TestValuesAreBoundToTheirKeys(t *testing.T) {
	store := newCodecStore(t, func(cfg *Config) { cfg.Transformer = keyTransformer{} })
	mustCreate(t, store, pod("ns", "a", "1"))
	mustCreate(t, store, pod("ns", "b", "1"))
	if names, err := listPods(store, storage.Everything); err != nil || len(names) != 2 {
		t.Fatalf("LIST: %v, %v", names, err)
	}
	damage(t, store, "/pods/ns/b", string(storedData(t, store, "/pods/ns/a")))
	if err := store.Get(t.Context(), "/pods/ns/b", storage.GetOptions{}, &example.Pod{}); !errors.Is(err, errInjected) {
		t.Errorf("Get of what was moved to another key: %v", err)
	}
}

// TestSuggestionSparesDecoding checks that a suggestion is used if, and only if, it is the present version.
func TestSuggestionSparesDecoding(t *testing.T) {
	store := newCodecStore(t)
	old := mustCreate(t, store, pod("ns", "a", "1"))
	current := &example.Pod{}
	if err := store.GuaranteedUpdate(t.Context(), "/pods/ns/a", current, false, nil, updateTo(pod("ns", "a", "2"), nil), nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name       string
		suggestion *example.Pod
		used       bool
	}{
		{"present", current, true},
		{"stale", old, false},
		{"without resourceVersion", pod("ns", "a", "1"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(object runtime.Object) error {
				if used := object == runtime.Object(test.suggestion); used != test.used {
					t.Errorf("the suggestion was used: %v, want %v", used, test.used)
				}
				if got := object.(*example.Pod); got.ResourceVersion != current.ResourceVersion || got.Annotations["version"] != "2" {
					t.Errorf("got version %s at %s", got.Annotations["version"], got.ResourceVersion)
				}
				return errInjected
			}
			err := store.GuaranteedUpdate(t.Context(), "/pods/ns/a", &example.Pod{}, false, nil, storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
				return nil, check(object)
			}), test.suggestion)
			if !errors.Is(err, errInjected) {
				t.Errorf("GuaranteedUpdate: %v", err)
			}
			err = store.Delete(t.Context(), "/pods/ns/a", &example.Pod{}, nil, func(_ context.Context, object runtime.Object) error {
				return check(object)
			}, test.suggestion, storage.DeleteOptions{})
			if !errors.Is(err, errInjected) {
				t.Errorf("Delete: %v", err)
			}
		})
	}
}

// TestSuggestionFromBeforeAResetIsIgnored has two versions of an object with one revision: one from before a Reset to
// smaller revisions, one from after it.
func TestSuggestionFromBeforeAResetIsIgnored(t *testing.T) {
	const key = "/pods/ns/a"
	store := newCodecStore(t)
	old := mustCreate(t, store, pod("ns", "a", "old"))
	store.Advance(store.Revision() + 2)
	seen := func(suggestion *example.Pod) []string {
		var out []string
		look := func(object runtime.Object) error {
			out = append(out, object.(*example.Pod).Annotations["version"])
			return errInjected
		}
		err := store.GuaranteedUpdate(t.Context(), key, &example.Pod{}, false, nil, storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
			return nil, look(object)
		}), suggestion)
		if !errors.Is(err, errInjected) {
			t.Errorf("GuaranteedUpdate: %v", err)
		}
		err = store.Delete(t.Context(), key, &example.Pod{}, nil, func(_ context.Context, object runtime.Object) error {
			return look(object)
		}, suggestion, storage.DeleteOptions{})
		if !errors.Is(err, errInjected) {
			t.Errorf("Delete: %v", err)
		}
		return out
	}
	expect := func(when, version string) {
		t.Helper()
		present, _ := store.lookup(key)
		suggestion := old.DeepCopy()
		suggestion.ResourceVersion = fmt.Sprint(present.revision)
		if diff := cmp.Diff([]string{version, version}, seen(suggestion)); diff != "" {
			t.Errorf("%s: versions that were looked at (-want +got):\n%s", when, diff)
		}
	}
	expect("before the Reset", "old")
	after := pod("ns", "a", "new")
	after.ResourceVersion = old.ResourceVersion
	store.Reset(1, map[string]runtime.Object{key: after})
	expect("the object of the Reset", "new")
	store.Reset(1, map[string]runtime.Object{key: pod("ns", "a", "newer")})
	expect("the object of another Reset", "newer")
	apply := func(version string) {
		t.Helper()
		if _, err := store.Apply(Change{Key: key, Object: pod("ns", "a", version)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := store.Revision(); i < 4; i++ { // the revision before the first Reset
		apply("again")
		expect("a revision that is given again", "again")
	}
	apply("new")
	expect("a revision that was never given before", "old")
}

// TestSpoiltSuggestionIsNotUsedAgain has another write come between, and the caller's function write the new
// resourceVersion into the suggestion that it got.
func TestSpoiltSuggestionIsNotUsedAgain(t *testing.T) {
	const key = "/pods/ns/a"
	for _, test := range []struct {
		name  string
		write func(store *Store, look func(runtime.Object) error, suggestion runtime.Object) error
	}{
		{"GuaranteedUpdate", func(store *Store, look func(runtime.Object) error, suggestion runtime.Object) error {
			return store.GuaranteedUpdate(t.Context(), key, &example.Pod{}, false, nil, storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
				if err := look(object); err != nil {
					return nil, err
				}
				return pod("ns", "a", "3"), nil
			}), suggestion)
		}},
		{"Delete", func(store *Store, look func(runtime.Object) error, suggestion runtime.Object) error {
			return store.Delete(t.Context(), key, &example.Pod{}, nil, func(_ context.Context, object runtime.Object) error {
				return look(object)
			}, suggestion, storage.DeleteOptions{})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newCodecStore(t)
			suggestion := mustCreate(t, store, pod("ns", "a", "1"))
			var seen []string
			err := test.write(store, func(object runtime.Object) error {
				got := object.(*example.Pod)
				if seen = append(seen, got.Annotations["version"]); len(seen) > 1 {
					return nil
				}
				revision, err := store.Apply(Change{Key: key, Object: pod("ns", "a", "2")})
				got.ResourceVersion = fmt.Sprint(revision)
				return err
			}, suggestion)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"1", "2"}, seen); diff != "" {
				t.Errorf("versions that it was asked about (-want +got):\n%s", diff)
			}
		})
	}
}

// otherCodec decodes into what nobody asked for.
type otherCodec struct{ runtime.Codec }

func (otherCodec) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return &examplev1.Pod{}, nil, nil
}

func TestDecodedTypeIsChecked(t *testing.T) {
	store := newCodecStore(t, func(cfg *Config) { cfg.Codec = otherCodec{cfg.Codec} })
	if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := listPods(store, storage.Everything); err == nil {
		t.Error("LIST: no error")
	}
	if err := store.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, &example.Pod{}); err == nil {
		t.Error("Get: no error")
	}
	expectError(t, mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: storage.Everything}), metav1.StatusReasonInternalError)
}

// TestStaleValuesAreRewritten checks that an update that changes nothing replaces what the transformer calls stale.
func TestStaleValuesAreRewritten(t *testing.T) {
	store := newCodecStore(t)
	transformer := switchable(store)
	before := mustCreate(t, store, pod("ns", "a", "1"))
	same := storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) { return object, nil })
	for _, test := range []struct {
		name       string
		stale      bool
		suggestion bool
	}{{"current", false, false}, {"stale", true, false}, {"stale, suggested", true, true}, {"current, suggested", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			transformer.set(storagetesting.NewPrefixTransformer([]byte(storedPrefix), test.stale))
			var suggestion runtime.Object
			if test.suggestion {
				suggestion = before.DeepCopy()
			}
			out := &example.Pod{}
			if err := store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, same, suggestion); err != nil {
				t.Fatal(err)
			}
			if written := out.ResourceVersion != before.ResourceVersion; written != test.stale {
				t.Errorf("written: %v, want %v", written, test.stale)
			}
			before = out
		})
	}
}

// countingTransformer counts what is read, and fails to read more than limit values.
type countingTransformer struct {
	value.Transformer
	reads, limit int
}

func (c *countingTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if c.reads++; c.reads > c.limit {
		return nil, false, errInjected
	}
	return c.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// TestWritesReadOnce checks that an update and a deletion transform what is there only once: a transformer may be slow,
// and one that fails after the write would make a success look like an error.
func TestWritesReadOnce(t *testing.T) {
	const key = "/pods/ns/a"
	for _, test := range []struct {
		name    string
		write   func(store *Store, out *example.Pod, suggestion runtime.Object) error
		content string
		written bool
	}{
		{"an update", func(store *Store, out *example.Pod, suggestion runtime.Object) error {
			return store.GuaranteedUpdate(t.Context(), key, out, false, nil, updateTo(pod("ns", "a", "2"), nil), suggestion)
		}, "2", true},
		{"an update that changes nothing", func(store *Store, out *example.Pod, suggestion runtime.Object) error {
			return store.GuaranteedUpdate(t.Context(), key, out, false, nil, updateTo(pod("ns", "a", "1"), nil), suggestion)
		}, "1", false},
		{"a deletion", func(store *Store, out *example.Pod, suggestion runtime.Object) error {
			return store.Delete(t.Context(), key, out, nil, storage.ValidateAllObjectFunc, suggestion, storage.DeleteOptions{})
		}, "1", true},
	} {
		for _, suggested := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/suggested=%v", test.name, suggested), func(t *testing.T) {
				store := newCodecStore(t)
				created := mustCreate(t, store, pod("ns", "a", "1"))
				var suggestion runtime.Object
				if suggested {
					suggestion = created.DeepCopy()
				}
				transformer := switchable(store)
				counting := &countingTransformer{Transformer: transformer.base, limit: 1}
				transformer.set(counting)
				out := &example.Pod{}
				if err := test.write(store, out, suggestion); err != nil {
					t.Fatal(err)
				}
				if counting.reads != 1 {
					t.Errorf("%d values were read, want 1", counting.reads)
				}
				want := pod("ns", "a", test.content)
				want.ResourceVersion = fmt.Sprint(store.Revision())
				if diff := cmp.Diff(want, out); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
				if written := out.ResourceVersion != created.ResourceVersion; written != test.written {
					t.Errorf("written: %v, want %v", written, test.written)
				}
			})
		}
	}
}

// TestCanceledWatchReportsNoError cancels watches while they read; that they could not is of no interest to anyone.
func TestCanceledWatchReportsNoError(t *testing.T) {
	for _, from := range []string{"", "1"} {
		t.Run("resourceVersion="+from, func(t *testing.T) {
			for range 20 { // an error that is sent to a canceled watch arrives every other time
				ctx, cancel := context.WithCancel(t.Context())
				store := newCodecStore(t, func(cfg *Config) { cfg.Transformer = cancelingTransformer{cfg.Transformer, cancel} })
				if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), nil, 0); err != nil {
					t.Fatal(err)
				}
				w, err := store.Watch(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: from})
				if err != nil {
					t.Fatal(err)
				}
				for event := range w.ResultChan() {
					t.Fatalf("got %v", event)
				}
			}
		})
	}
}

// TestDecodedObjectsAreTheReaders writes to everything that a store in codec mode hands out or got.
func TestDecodedObjectsAreTheReaders(t *testing.T) {
	store := newCodecStore(t)
	spoil := func(object *example.Pod) {
		object.Annotations["version"] = "spoilt"
		object.Name = "spoilt"
	}
	in := pod("ns", "a", "1")
	out := mustCreate(t, store, in)
	revision := out.ResourceVersion
	spoil(in)
	spoil(out)
	applied := pod("ns", "b", "1")
	if _, err := store.Apply(Change{Key: "/pods/ns/b", Object: applied}); err != nil {
		t.Fatal(err)
	}
	spoil(applied)
	for range 2 {
		for _, name := range []string{"a", "b"} {
			got := &example.Pod{}
			if err := store.Get(t.Context(), "/pods/ns/"+name, storage.GetOptions{}, got); err != nil {
				t.Fatal(err)
			}
			if got.Name != name || got.Annotations["version"] != "1" {
				t.Errorf("Get: %s has version %s", got.Name, got.Annotations["version"])
			}
			spoil(got)
		}
		list := &example.PodList{}
		if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b"}, itemNames(list)); diff != "" {
			t.Errorf("LIST (-want +got):\n%s", diff)
		}
		for i := range list.Items {
			spoil(&list.Items[i])
		}
		for _, opts := range []storage.ListOptions{{}, {ResourceVersion: revision}} {
			opts.Recursive, opts.Predicate = true, storage.Everything
			w := mustWatch(t, store, opts)
			event := next(t, w)
			if opts.ResourceVersion == "" {
				spoil(event.Object.(*example.Pod))
				event = next(t, w)
			}
			if got := event.Object.(*example.Pod); got.Name != "b" {
				t.Errorf("watch: got %s, want b", got.Name)
			}
			spoil(event.Object.(*example.Pod))
			w.Stop()
		}
	}
}
