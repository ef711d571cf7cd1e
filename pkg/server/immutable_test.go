// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// TestRequestsLeaveCachedObjectsAlone compares the objects themselves that the stores and the watch caches above them
// share, before and after reads of all kinds at the same time. The race detector sees a write that is undone.
func TestRequestsLeaveCachedObjectsAlone(t *testing.T) {
	t.Parallel()
	const requests, clients = 1_000, 8
	g := readyGrid(t, startUpstream(t, fixture(
		fullSlice("default"), fullEndpoints("default"), fullSlice("other"), slice("plain-1", "plain", "n1", "-"), endpoints("plain", "n3"),
		service("plain", noPolicy), namespace("default"), namespace("other"),
	)...))
	g.get(t, g.local, "/api/v1/endpoints", asJSON) // from now on they are followed
	shared := sharedObjects(t, g)
	before := map[schema.GroupResource][]runtime.Object{}
	count := 0
	for gr, objects := range shared {
		for _, o := range objects {
			before[gr] = append(before[gr], o.DeepCopyObject())
			count++
		}
	}
	if count < 10 {
		t.Fatalf("%d objects are shared", count)
	}

	paths := append([]string{
		"/api/v1/namespaces/default/services/s", "/api/v1/namespaces/default/endpoints/s", "/api/v1/nodes/n1", "/api/v1/namespaces/default",
		slicesPath + "?labelSelector=kubernetes.io/service-name%3Ds", slicesPath + "?limit=1", slicesPath + "?resourceVersion=0",
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/s-1", "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices?limit=1",
		"/api/v1/services?fieldSelector=metadata.name%3Ds", "/api/v1/services?labelSelector=!no", "/api/v1/endpoints?limit=2",
		slicesPath + "?timeoutSeconds=1&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	}, localPaths...)
	accepts := []string{
		asJSON, asProtobuf, asTable, "application/yaml",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
	}
	var next, answered atomic.Int64
	var group sync.WaitGroup
	for range clients {
		client := newHTTPClient(t, g.local)
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= requests {
					return
				}
				path, accept := paths[i%len(paths)], accepts[i/len(paths)%len(accepts)]
				if i%len(paths) == 12 && i/len(paths)%8 != 0 {
					path = slicesPath // a watch lasts a second
				}
				a, err := tryFetch(t.Context(), client, "https://"+g.address+path, accept)
				if err != nil {
					t.Errorf("GET %s as %s: %v", path, accept, err)
					return
				}
				switch a.code {
				case http.StatusOK:
					answered.Add(1)
				case http.StatusNotAcceptable: // a list of metadata of what is no list, for example
				default:
					t.Errorf("GET %s as %s: %d %s", path, accept, a.code, a.body)
				}
			}
		})
	}
	group.Wait()
	if answered.Load() < requests/2 {
		t.Errorf("%d of %d requests were answered", answered.Load(), requests)
	}
	for gr, objects := range shared {
		if diff := cmp.Diff(before[gr], objects); diff != "" {
			t.Errorf("%s were changed (-before +after):\n%s", gr.Resource, diff)
		}
	}
}

// sharedObjects returns the objects of the stores: events of a watch carry the objects themselves.
func sharedObjects(t *testing.T, g *grid) map[schema.GroupResource][]runtime.Object {
	t.Helper()
	out := map[schema.GroupResource][]runtime.Object{}
	for gr, store := range g.stores {
		stats, err := store.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := store.Watch(t.Context(), "/"+gr.Resource, storage.ListOptions{Recursive: true, Predicate: storage.Everything})
		if err != nil {
			t.Fatal(err)
		}
		for range stats.ObjectCount {
			event := <-w.ResultChan()
			if event.Type != watch.Added {
				t.Fatal(fmt.Sprint(gr.Resource, " begin with ", event))
			}
			out[gr] = append(out[gr], event.Object)
		}
		w.Stop()
	}
	return out
}
