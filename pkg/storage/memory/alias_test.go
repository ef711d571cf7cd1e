// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// overwrite writes to everything that can be reached from v: fields, what pointers point to, elements, and values of maps.
// What is nil it makes, so overwriting an empty object with 1 fills it, and doing that again with 2 changes all of it.
func overwrite(v reflect.Value, with int) {
	switch v.Type() {
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(int64(with), 0).UTC())))
		return
	case reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(*resource.NewQuantity(int64(with), resource.DecimalSI)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(with%2 == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(with))
	case reflect.Uint8, reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64('0' + with)) // a byte of a JSON document too
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d", with))
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		overwrite(v.Elem(), with)
	case reflect.Struct:
		for i := range v.NumField() {
			overwrite(v.Field(i), with)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			overwrite(v.Index(i), with)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		keys := append(v.MapKeys(), reflect.New(v.Type().Key()).Elem())
		overwrite(keys[len(keys)-1], with)
		for _, key := range keys {
			value := reflect.New(v.Type().Elem()).Elem()
			if old := v.MapIndex(key); old.IsValid() {
				value.Set(old)
			}
			overwrite(value, with)
			v.SetMapIndex(key, value)
		}
	default:
		panic(fmt.Sprintf("an object holds a %s, which this test cannot overwrite", v.Type()))
	}
}

func spoil(object runtime.Object) { overwrite(reflect.ValueOf(object), 2) }

// fullPod has something in every field.
func fullPod(name string) *example.Pod {
	object := &example.Pod{}
	overwrite(reflect.ValueOf(object), 1)
	object.TypeMeta = metav1.TypeMeta{}
	object.Namespace, object.Name, object.ResourceVersion = "ns", name, ""
	return object
}

// aliasing is a store whose contents are known, in all forms in which they are shown.
type aliasing struct {
	*Store
	start  uint64
	before shown
}

// shown is what LISTs of all times and a watch from the start show.
type shown struct {
	present, past []example.Pod
	events        []watch.Event
}

func newAliasing(t *testing.T, store *Store) *aliasing {
	t.Helper()
	a := &aliasing{Store: store, start: store.Revision()}
	for _, name := range []string{"a", "b"} {
		if err := store.Create(t.Context(), "/pods/ns/"+name, fullPod(name), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	a.before = a.show(t, store.Revision())
	return a
}

// show reads everything up to revision, and copies it.
func (a *aliasing) show(t *testing.T, revision uint64) shown {
	t.Helper()
	var out shown
	list := func(opts storage.ListOptions) []example.Pod {
		list := &example.PodList{}
		opts.Recursive, opts.Predicate = true, storage.Everything
		if err := a.GetList(t.Context(), "/pods/", opts, list); err != nil {
			t.Fatal(err)
		}
		return list.DeepCopyObject().(*example.PodList).Items
	}
	out.present = list(storage.ListOptions{ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	out.past = list(storage.ListOptions{ResourceVersion: fmt.Sprint(revision - 1), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	w := mustWatch(t, a.Store, storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: fmt.Sprint(a.start)})
	for range revision - a.start {
		event := next(t, w)
		out.events = append(out.events, watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()})
	}
	return out
}

// read returns an object as it is stored.
func (a *aliasing) read(t *testing.T, name string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := a.Get(t.Context(), "/pods/ns/"+name, storage.GetOptions{}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNothingIsSharedWithCallers overwrites all that goes into the store and all that comes out of it, field by field, and
// compares what LISTs and watches show with what they showed before. Events of watches, and what Apply and Reset are
// given, are not among it: they are shared by contract.
func TestNothingIsSharedWithCallers(t *testing.T) {
	refused := errors.New("refused")
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	for _, test := range []struct {
		name string
		// call makes a call whose changes, if any, are past the revision that is compared, and spoils what the caller has.
		call func(t *testing.T, a *aliasing) error
	}{
		{"Get", func(t *testing.T, a *aliasing) error {
			out := &example.Pod{}
			err := a.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, out)
			spoil(out)
			return err
		}},
		{"GetList", func(t *testing.T, a *aliasing) error {
			out := &example.PodList{}
			err := a.GetList(t.Context(), "/pods/", everything, out)
			spoil(out)
			return err
		}},
		{"GetList of a page", func(t *testing.T, a *aliasing) error {
			out, opts := &example.PodList{}, everything
			opts.Predicate.Limit = 1
			err := a.GetList(t.Context(), "/pods/", opts, out)
			spoil(out)
			return err
		}},
		{"GetList of the past", func(t *testing.T, a *aliasing) error {
			out, opts := &example.PodList{}, everything
			opts.ResourceVersion, opts.ResourceVersionMatch = fmt.Sprint(a.Revision()-1), metav1.ResourceVersionMatchExact
			err := a.GetList(t.Context(), "/pods/", opts, out)
			spoil(out)
			return err
		}},
		{"GetList of one key", func(t *testing.T, a *aliasing) error {
			out := &example.PodList{}
			err := a.GetList(t.Context(), "/pods/ns/a", storage.ListOptions{Predicate: storage.Everything}, out)
			spoil(out)
			return err
		}},
		{"the input of an update that is refused", func(t *testing.T, a *aliasing) error {
			err := a.GuaranteedUpdate(t.Context(), "/pods/ns/a", &example.Pod{}, false, nil, storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
				spoil(in)
				return nil, refused
			}), nil)
			if !errors.Is(err, refused) {
				return err
			}
			return nil
		}},
		{"the destination of an update that changes nothing", func(t *testing.T, a *aliasing) error {
			out := &example.Pod{}
			err := a.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) { return in, nil }), nil)
			spoil(out)
			return err
		}},
		{"the suggestion of an update", func(t *testing.T, a *aliasing) error {
			suggestion, out := a.read(t, "a"), &example.Pod{}
			err := a.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) { return in, nil }), suggestion)
			spoil(suggestion)
			return err
		}},
		{"the object in validation of a deletion that is refused", func(t *testing.T, a *aliasing) error {
			err := a.Delete(t.Context(), "/pods/ns/a", &example.Pod{}, nil, func(_ context.Context, object runtime.Object) error {
				spoil(object)
				return refused
			}, nil, storage.DeleteOptions{})
			if !errors.Is(err, refused) {
				return err
			}
			return nil
		}},
		{"the object in validation of a deletion, and its result", func(t *testing.T, a *aliasing) error {
			out := &example.Pod{}
			err := a.Delete(t.Context(), "/pods/ns/a", out, nil, func(_ context.Context, object runtime.Object) error {
				spoil(object)
				return nil
			}, nil, storage.DeleteOptions{})
			spoil(out)
			return err
		}},
		{"the suggestion of a deletion", func(t *testing.T, a *aliasing) error {
			suggestion := a.read(t, "a")
			err := a.Delete(t.Context(), "/pods/ns/a", &example.Pod{}, nil, storage.ValidateAllObjectFunc, suggestion, storage.DeleteOptions{})
			spoil(suggestion)
			return err
		}},
		{"what Apply replaces", func(t *testing.T, a *aliasing) error {
			_, err := a.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "2")}, Change{Key: "/pods/ns/b"})
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
				a := newAliasing(t, newStore(t))
				compared := a.Revision()
				if err := test.call(t, a); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(a.before, a.show(t, compared), cmp.AllowUnexported(shown{})); diff != "" {
					t.Errorf("the store was changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// TestWrittenObjectsAreNotShared overwrites what was given to a write, and what came back, and reads what was written.
func TestWrittenObjectsAreNotShared(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(t *testing.T, store *Store, object *example.Pod) (out *example.Pod, err error)
	}{
		{"Create", func(t *testing.T, store *Store, object *example.Pod) (*example.Pod, error) {
			untouched, out := object.DeepCopyObject(), &example.Pod{}
			err := store.Create(t.Context(), "/pods/ns/a", object, out, 0)
			if diff := cmp.Diff(untouched, runtime.Object(object)); diff != "" {
				t.Errorf("Create wrote to its input (-before +after):\n%s", diff)
			}
			return out, err
		}},
		{"GuaranteedUpdate that creates", func(t *testing.T, store *Store, object *example.Pod) (*example.Pod, error) {
			out := &example.Pod{}
			return out, store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, true, nil, updateTo(object, nil), nil)
		}},
		{"GuaranteedUpdate", func(t *testing.T, store *Store, object *example.Pod) (*example.Pod, error) {
			if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), nil, 0); err != nil {
				return nil, err
			}
			out := &example.Pod{}
			return out, store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, updateTo(object, nil), nil)
		}},
		{"GuaranteedUpdate that returns its input", func(t *testing.T, store *Store, object *example.Pod) (*example.Pod, error) {
			if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), nil, 0); err != nil {
				return nil, err
			}
			var input *example.Pod
			out := &example.Pod{}
			err := store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
				input = in.(*example.Pod)
				*input = *object
				return input, nil
			}), nil)
			spoil(input)
			return out, err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
				store := newStore(t)
				object := fullPod("a")
				out, err := test.write(t, store, object)
				if err != nil {
					t.Fatal(err)
				}
				want := out.DeepCopyObject()
				spoil(object)
				spoil(out)
				got := &example.Pod{}
				if err := store.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, runtime.Object(got)); diff != "" {
					t.Errorf("what is stored was changed (-written +read):\n%s", diff)
				}
			})
		})
	}
}

// TestApplyWritesNothingButTheRevision checks what Apply may do to an object that it is given, which shares its parts with
// others: nothing if it has its revision already, or else to set that.
func TestApplyWritesNothingButTheRevision(t *testing.T) {
	store := newTestStore(t)
	for _, stamped := range []bool{true, false} {
		object := fullPod("a")
		if stamped {
			object.ResourceVersion = fmt.Sprint(store.Revision() + 1)
		}
		want := object.DeepCopyObject().(*example.Pod)
		revision, err := store.Apply(Change{Key: "/pods/ns/a", Object: object})
		if err != nil {
			t.Fatal(err)
		}
		want.ResourceVersion = fmt.Sprint(revision)
		// Replacing and deleting it leave it alone too.
		if _, err := store.Apply(Change{Key: "/pods/ns/a", Object: pod("ns", "a", "2")}, Change{Key: "/pods/ns/a"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, object); diff != "" {
			t.Errorf("stamped %v (-want +got):\n%s", stamped, diff)
		}
	}
}
