// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// damage replaces what is stored under key by bytes that the transformer takes and the codec does not, or neither.
func damage(t testing.TB, store *Store, key, data string) {
	t.Helper()
	present, _ := store.lookup(key)
	if present == nil {
		t.Fatalf("nothing is stored under %q", key)
	}
	if done, err := store.replace(present, &entry{key: key, data: []byte(data)}, 0); !done {
		t.Fatalf("damaging %q: %v", key, err)
	}
}

// damages are the ways in which stored bytes can be unreadable.
var damages = map[string]string{
	"transform":     "encrypted!?",
	"decode":        storedPrefix + `{"kind":"Pod"`,
	"another kind":  storedPrefix + `{"kind":"PodList","apiVersion":"example.apiserver.k8s.io/v1","items":[]}`,
	"nothing there": "",
}

// forEachDamage runs a test on a store that holds the pods a, broken and c, of which one cannot be read. The pods were
// intact at revision.
func forEachDamage(t *testing.T, unsafeDeletion bool, run func(t *testing.T, store *Store, revision uint64)) {
	t.Helper()
	for name, data := range damages {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, unsafeDeletion)
			store := newCodecStore(t)
			for _, name := range []string{"a", "broken", "c"} {
				mustCreate(t, store, pod("ns", name, "1"))
			}
			revision := store.Revision()
			damage(t, store, "/pods/ns/broken", data)
			run(t, store, revision)
		})
	}
}

func mustCreate(t testing.TB, store *Store, object *example.Pod) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := store.Create(t.Context(), "/pods/"+object.Namespace+"/"+object.Name, object, out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func itemNames(list *example.PodList) []string {
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func listPods(store *Store, predicate storage.SelectionPredicate) ([]string, error) {
	list := &example.PodList{}
	err := store.GetList(context.Background(), "/pods/", storage.ListOptions{Recursive: true, Predicate: predicate}, list)
	return itemNames(list), err
}

func TestUnreadableObjectFailsReadsAndWrites(t *testing.T) {
	const key = "/pods/ns/broken"
	forEachDamage(t, false, func(t *testing.T, store *Store, _ uint64) {
		before := store.Revision()
		calls := 0
		update := storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
			calls++
			return object, nil
		})
		none := labels.SelectorFromSet(labels.Set{"no": "such"})
		for name, err := range map[string]error{
			"Get":              store.Get(t.Context(), key, storage.GetOptions{}, &example.Pod{}),
			"GuaranteedUpdate": store.GuaranteedUpdate(t.Context(), key, &example.Pod{}, true, nil, update, nil),
			"Delete":           store.Delete(t.Context(), key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}),
			"unsafe deletion that is not enabled": store.Delete(t.Context(), key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil,
				storage.DeleteOptions{ExpectTransformOrDecodeError: true}),
			"GetList": second(listPods(store, storage.Everything)),
			"GetList with a selector": second(listPods(store, storage.SelectionPredicate{
				Label: none, Field: fields.Everything(), GetAttrs: podAttrs,
			})),
		} {
			if !storage.IsInternalError(err) {
				t.Errorf("%s: %v, want an internal error", name, err)
			}
		}
		if calls != 0 {
			t.Errorf("the update function was called %d times", calls)
		}
		if after := store.Revision(); after != before {
			t.Errorf("the revision went from %d to %d", before, after)
		}
		if err := store.Create(t.Context(), key, pod("ns", "broken", "2"), nil, 0); !storage.IsExist(err) {
			t.Errorf("Create over it: %v, want that the key exists", err)
		}
		page := storage.Everything
		page.Limit = 1
		if names, err := listPods(store, page); err != nil || !cmp.Equal(names, []string{"a"}) {
			t.Errorf("a page before it: %v, %v", names, err)
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

func TestUnreadableObjectCanBeFoundAndDeleted(t *testing.T) {
	const key = "/pods/ns/broken"
	unsafe := storage.DeleteOptions{ExpectTransformOrDecodeError: true}
	forEachDamage(t, true, func(t *testing.T, store *Store, revision uint64) {
		err := store.Get(t.Context(), key, storage.GetOptions{}, &example.Pod{})
		if failed, ok := errors.AsType[*storage.StorageError](err); !ok || !storage.IsCorruptObject(err) || failed.Key != key {
			t.Errorf("Get: %v, want a corrupt object %s", err, key)
		}
		names, err := listPods(store, storage.Everything)
		if status := apierrors.APIStatus(nil); !asStatus(err, &status) || status.Status().Reason != metav1.StatusReasonStoreReadError ||
			len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Field != key {
			t.Errorf("LIST: %v, want one that names %s", err, key)
		}
		if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
			t.Errorf("LIST (-want +got):\n%s", diff)
		}

		if err := store.Delete(t.Context(), "/pods/ns/a", &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, unsafe); !storage.IsInvalidObj(err) {
			t.Errorf("unsafe deletion of an intact object: %v, want an invalid object", err)
		}
		refuse := func(_ context.Context, object runtime.Object) error {
			if object != nil {
				t.Errorf("the validation got %v", object)
			}
			return errInjected
		}
		if err := store.Delete(t.Context(), key, &example.Pod{}, nil, refuse, nil, unsafe); !errors.Is(err, errInjected) {
			t.Errorf("unsafe deletion that the validation refuses: %v", err)
		}
		uid := storage.NewUIDPreconditions("1")
		if err := store.Delete(t.Context(), key, &example.Pod{}, uid, storage.ValidateAllObjectFunc, nil, unsafe); err == nil {
			t.Error("unsafe deletion with preconditions, which nobody can check: no error")
		}
		suggestion := pod("ns", "broken", "1")
		suggestion.ResourceVersion = fmt.Sprint(store.Revision()) // somebody could still read it
		if err := store.Delete(t.Context(), key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, suggestion, unsafe); err != nil {
			t.Fatalf("unsafe deletion: %v", err)
		}
		if names, err := listPods(store, storage.Everything); err != nil || !cmp.Equal(names, []string{"a", "c"}) {
			t.Errorf("LIST after it: %v, %v", names, err)
		}
		if names, err := listAt(store, revision); err != nil || !cmp.Equal(names, []string{"a", "broken", "c"}) {
			t.Errorf("LIST of the intact past: %v, %v", names, err)
		}
	})
}

// TestCanceledReadIsNotCorrupt checks that an object is not deleted because its reader went away.
func TestCanceledReadIsNotCorrupt(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
	const key = "/pods/ns/a"
	ctx, cancel := context.WithCancel(t.Context())
	store := newCodecStore(t, func(cfg *Config) { cfg.Transformer = cancelingTransformer{cfg.Transformer, func() { cancel() }} })
	if err := store.Create(t.Context(), key, pod("ns", "a", "1"), nil, 0); err != nil {
		t.Fatal(err)
	}
	err := store.Delete(ctx, key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{ExpectTransformOrDecodeError: true})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("unsafe deletion: %v, want that it was canceled", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if err := store.Get(ctx, key, storage.GetOptions{}, &example.Pod{}); storage.IsCorruptObject(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v, want that it was canceled", err)
	}
	if found, _ := store.lookup(key); found == nil {
		t.Error("the object was deleted")
	}
}

// cancelingTransformer is one whose caller goes away while it asks a key service.
type cancelingTransformer struct {
	value.Transformer
	cancel context.CancelFunc
}

func (c cancelingTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	c.cancel()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	return c.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

func asStatus(err error, out *apierrors.APIStatus) bool {
	status, ok := err.(apierrors.APIStatus)
	*out = status
	return ok
}

func listAt(store *Store, revision uint64) ([]string, error) {
	list := &example.PodList{}
	err := store.GetList(context.Background(), "/pods/", storage.ListOptions{
		Recursive: true, Predicate: storage.Everything,
		ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}, list)
	return itemNames(list), err
}

func TestUnreadableObjectEndsWatches(t *testing.T) {
	forEachDamage(t, true, func(t *testing.T, store *Store, revision uint64) {
		damaged := store.Revision()
		if err := store.Delete(t.Context(), "/pods/ns/broken", &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil,
			storage.DeleteOptions{ExpectTransformOrDecodeError: true}); err != nil {
			t.Fatal(err)
		}
		onlyC := storage.SelectionPredicate{Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", "c"), GetAttrs: podAttrs}
		for _, test := range []struct {
			name      string
			from      uint64
			predicate storage.SelectionPredicate
			enabled   bool
			reason    metav1.StatusReason
		}{
			{"its change", revision, storage.Everything, true, metav1.StatusReasonInternalError},
			{"its change, of which nobody knows whether it is selected", revision, onlyC, true, metav1.StatusReasonInternalError},
			{"its deletion", damaged, storage.Everything, true, metav1.StatusReasonStoreReadError},
			{"its deletion, and the feature is disabled", damaged, storage.Everything, false, metav1.StatusReasonInternalError},
		} {
			t.Run(test.name, func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, test.enabled)
				w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: test.predicate, ResourceVersion: fmt.Sprint(test.from)})
				expectError(t, w, test.reason)
			})
		}
	})
}

func TestUnreadableObjectEndsInitialEvents(t *testing.T) {
	forEachDamage(t, true, func(t *testing.T, store *Store, _ uint64) {
		yes := true
		predicate := storage.Everything
		predicate.AllowWatchBookmarks = true
		w := mustWatch(t, store, storage.ListOptions{Recursive: true, Predicate: predicate, SendInitialEvents: &yes})
		if event := next(t, w); event.Type != watch.Added || event.Object.(*example.Pod).Name != "a" {
			t.Errorf("got %s, want the object before it", describe(event))
		}
		expectError(t, w, metav1.StatusReasonInternalError)
	})
}

// expectError expects an ERROR event with reason, and nothing after it.
func expectError(t testing.TB, w watch.Interface, reason metav1.StatusReason) {
	t.Helper()
	event := next(t, w)
	status, ok := event.Object.(*metav1.Status)
	if event.Type != watch.Error || !ok || status.Reason != reason {
		t.Fatalf("got %v, want an ERROR with reason %s", event, reason)
	}
	select {
	case event, open := <-w.ResultChan():
		if open {
			t.Errorf("got %s after an ERROR", describe(event))
		}
	case <-time.After(wait.ForeverTestTimeout):
		t.Error("the watch goes on after an ERROR")
	}
}
