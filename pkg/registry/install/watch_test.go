// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const watchList = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

func TestInitialEventsEndWithABookmark(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	s.put(t, servicesResource, "default/b", service("b", labelled("tier", "front")))
	for path, count := range map[string]int{
		"/api/v1/services?":                            2,
		"/api/v1/services?labelSelector=tier%3Dfront&": 1,
		"/api/v1/services?labelSelector=absent&":       0,
		"/api/v1/namespaces/other/services?":           0,
		"/api/v1/nodes?":                               0,
		"/apis/discovery.k8s.io/v1/endpointslices?":    0,
	} {
		for _, accept := range []string{asJSON, asPartial} {
			for _, revision := range []string{"", "&resourceVersion=0"} {
				t.Run(path+revision+" "+accept, func(t *testing.T) {
					w := s.watch(t, path+watchList+revision, accept)
					for range count {
						if e := w.next(); e.Type != "ADDED" {
							t.Errorf("got %s, want ADDED", e.Type)
						}
					}
					e := w.next()
					bookmark := e.metadata(t)
					if e.Type != "BOOKMARK" || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.ResourceVersion == "" {
						t.Errorf("got %s %s, want the bookmark that ends the initial events", e.Type, e.Object)
					}
				})
			}
		}
	}
}

func TestBookmarksCarryTheNewestRevision(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	// The cache sends a bookmark shortly before the watch ends.
	w := s.watch(t, fmt.Sprintf("/api/v1/services?resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=6&labelSelector=absent", initialRevision), asJSON)
	want := strconv.FormatUint(s.put(t, servicesResource, "default/a", service("a")), 10)
	for {
		e := w.next()
		if e.Type != "BOOKMARK" {
			t.Fatalf("got %s %s, want bookmarks only", e.Type, e.Object)
		}
		if got := e.metadata(t); got.ResourceVersion == want && got.Kind == "Service" {
			return
		}
	}
}

func TestChangeBetweenListAndWatchArrivesOnce(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	list := get[corev1.ServiceList](t, s, "/api/v1/services", asJSON)
	s.put(t, servicesResource, "default/b", service("b"))
	s.put(t, servicesResource, "default/a", service("a", labelled("changed", "yes")))
	s.put(t, servicesResource, "default/b", nil)
	w := s.watch(t, "/api/v1/services?resourceVersion="+list.ResourceVersion, asJSON)
	s.put(t, servicesResource, "default/c", service("c"))

	var got []string
	for range 4 {
		e := w.next()
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.metadata(t).Name, e.metadata(t).ResourceVersion))
	}
	var want []string
	for i, text := range []string{"ADDED b", "MODIFIED a", "DELETED b", "ADDED c"} {
		want = append(want, fmt.Sprintf("%s %d", text, initialRevision+2+uint64(i)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestLeavingTheSelectorIsADelete(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a", labelled("tier", "front")))
	for _, selector := range []string{"labelSelector=tier%3Dfront", "fieldSelector=spec.clusterIP!%3DNone"} {
		t.Run(selector, func(t *testing.T) {
			w := s.watch(t, "/api/v1/services?"+selector, asJSON)
			if e := w.next(); e.Type != "ADDED" {
				t.Fatalf("got %s, want ADDED", e.Type)
			}
			left := s.put(t, servicesResource, "default/a", service("a", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }))
			if e := w.next(); e.Type != "DELETED" || e.metadata(t).ResourceVersion != strconv.FormatUint(left, 10) {
				t.Errorf("got %s %s, want DELETED at %d", e.Type, e.Object, left)
			}
			back := s.put(t, servicesResource, "default/a", service("a", labelled("tier", "front")))
			if e := w.next(); e.Type != "ADDED" || e.metadata(t).ResourceVersion != strconv.FormatUint(back, 10) {
				t.Errorf("got %s %s, want ADDED at %d", e.Type, e.Object, back)
			}
		})
	}
}

func TestInformerNeedsNoList(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	for _, contentType := range []string{asJSON, asProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(s.client(t, contentType), 0)
			serviceInformer := factory.Core().V1().Services().Informer()
			names := make(chan string, 10)
			if _, err := serviceInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { names <- "add " + obj.(*corev1.Service).Name },
				DeleteFunc: func(obj any) { names <- "delete " + obj.(*corev1.Service).Name },
			}); err != nil {
				t.Fatal(err)
			}
			// Resources without any object must sync as well.
			factory.Core().V1().Endpoints().Informer()
			factory.Core().V1().Nodes().Informer()
			factory.Core().V1().Namespaces().Informer()
			factory.Discovery().V1().EndpointSlices().Informer()
			factory.Networking().V1().ServiceCIDRs().Informer()
			stop := make(chan struct{})
			factory.Start(stop)
			defer factory.Shutdown()
			defer close(stop)
			for informer, synced := range factory.WaitForCacheSync(t.Context().Done()) {
				if !synced {
					t.Errorf("%v did not sync", informer)
				}
			}
			s.put(t, servicesResource, "default/b", service("b"))
			s.put(t, servicesResource, "default/b", nil)
			for _, want := range []string{"add a", "add b", "delete b"} {
				select {
				case got := <-names:
					if got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				case <-time.After(5 * time.Second):
					t.Fatalf("no %q within 5 s", want)
				}
			}
			if count := s.lists(); count != 0 {
				t.Errorf("the informers sent %d LIST requests, want none", count)
			}
		})
	}
}
