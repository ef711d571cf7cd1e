// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

func updateTo(object runtime.Object, ttl *uint64) storage.UpdateFunc {
	return func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) { return object, ttl, nil }
}

func TestGuaranteedUpdateWritesOnlyChanges(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name           string
		key            string
		ignoreNotFound bool
		preconditions  *storage.Preconditions
		update         func(*example.Pod) error
		want           string // of the object that came back, as name@resourceVersion=version
		wantErr        func(error) bool
	}{
		{name: "change", key: "a", update: func(p *example.Pod) error { p.Annotations["version"] = "2"; return nil }, want: "a@3=2"},
		{name: "no change", key: "a", update: func(*example.Pod) error { return nil }, want: "a@2=1"},
		{name: "another resourceVersion and selfLink are no change", key: "a", update: func(p *example.Pod) error {
			p.ResourceVersion, p.SelfLink = "77", "/x"
			return nil
		}, want: "a@2=1"},
		{name: "empty instead of nil is a change", key: "a", update: func(p *example.Pod) error { p.Labels = map[string]string{}; return nil }, want: "a@3=1"},
		{name: "not found", key: "b", update: func(*example.Pod) error { return nil }, wantErr: storage.IsNotFound},
		{name: "not found, created", key: "b", ignoreNotFound: true, update: func(p *example.Pod) error {
			if p.Name != "" {
				return errors.New("the input is not empty")
			}
			*p = *pod("ns", "b", "1")
			return nil
		}, want: "b@3=1"},
		{name: "precondition holds", key: "a", preconditions: &storage.Preconditions{ResourceVersion: ptr.To("2")}, update: func(p *example.Pod) error {
			p.Annotations["version"] = "2"
			return nil
		}, want: "a@3=2"},
		{name: "precondition fails", key: "a", preconditions: &storage.Preconditions{ResourceVersion: ptr.To("1")},
			update: func(*example.Pod) error { return nil }, wantErr: storage.IsInvalidObj},
		{name: "refused by the function, whose changes are lost", key: "a", update: func(p *example.Pod) error {
			p.Annotations["version"] = "9"
			return refused
		}, wantErr: func(err error) bool { return errors.Is(err, refused) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newTestStore(t)
			if err := store.Create(t.Context(), "/pods/ns/a", pod("ns", "a", "1"), nil, 0); err != nil {
				t.Fatal(err)
			}
			out := &example.Pod{}
			err := store.GuaranteedUpdate(t.Context(), "/pods/ns/"+test.key, out, test.ignoreNotFound, test.preconditions,
				storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) { return in, test.update(in.(*example.Pod)) }), nil)
			if test.wantErr != nil {
				if !test.wantErr(err) {
					t.Errorf("unexpected error %v", err)
				}
				if diff := cmp.Diff([]string{"a@2=1"}, contents(t, store)); diff != "" {
					t.Errorf("contents (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Name + "@" + out.ResourceVersion + "=" + out.Annotations["version"]; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestStoredObjectsAreIsolated writes to everything that goes in and comes out.
func TestStoredObjectsAreIsolated(t *testing.T) {
	store := newTestStore(t)
	spoil := func(p *example.Pod) { p.Annotations["version"] = "spoiled" }
	check := func(what string) {
		t.Helper()
		if found, _ := store.lookup("/pods/ns/a"); found.object.(*example.Pod).Annotations["version"] != "1" {
			t.Fatalf("%s reaches the stored object", what)
		}
	}
	in, out := pod("ns", "a", "1"), &example.Pod{}
	if err := store.Create(t.Context(), "/pods/ns/a", in, out, 0); err != nil {
		t.Fatal(err)
	}
	spoil(in)
	check("the input of Create")
	spoil(out)
	check("the output of Create")
	if err := store.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, out); err != nil {
		t.Fatal(err)
	}
	spoil(out)
	check("the output of Get")
	list := &example.PodList{}
	if err := store.GetList(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
		t.Fatal(err)
	}
	spoil(&list.Items[0])
	check("the output of GetList")
	updated := pod("ns", "a", "1")
	updated.Labels = map[string]string{"new": "label"}
	if err := store.GuaranteedUpdate(t.Context(), "/pods/ns/a", out, false, nil, func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		spoil(input.(*example.Pod))
		return updated, nil, nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	spoil(updated)
	check("the result of an update function")
	spoil(out)
	check("the output of GuaranteedUpdate")
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no prefix":          func(cfg *Config) { cfg.ResourcePrefix = "" },
		"the root as prefix": func(cfg *Config) { cfg.ResourcePrefix = "/" },
		"a relative prefix":  func(cfg *Config) { cfg.ResourcePrefix = "pods" },
		"no NewFunc":         func(cfg *Config) { cfg.NewFunc = nil },
		"a list of other things": func(cfg *Config) {
			cfg.NewListFunc = func() runtime.Object { return &metav1.PartialObjectMetadataList{} }
		},
		"a negative limit": func(cfg *Config) { cfg.HistoryLimit = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := podConfig()
			change(&cfg)
			if store, err := New(cfg); err == nil {
				store.Stop()
				t.Error("no error")
			}
		})
	}
}
