// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The store, the cache and all requests share one object. Run with -race this
// finds writes to it while others read; the comparison finds those that
// happened in time, such as an encoder that leaves the kind behind.
func TestRequestsLeaveStoredObjectsUnchanged(t *testing.T) {
	const clients, requests, count = 10, 100, 20
	s := newServer(t)
	stored, before := make([]*corev1.Service, count), make([]*corev1.Service, count)
	store := func(i int, object *corev1.Service) {
		s.put(t, servicesResource, "default/"+object.Name, object)
		stored[i], before[i] = object, object.DeepCopy()
	}
	for i := range count {
		store(i, service(fmt.Sprintf("s%d", i), labelled("parity", fmt.Sprint(i%2))))
	}

	// Watches in all forms, both of the state and of the changes below.
	var watches []*stream
	for _, accept := range []string{asJSON, asTable, asPartial} {
		for _, query := range []string{"", "?includeObject=Object", "?labelSelector=parity%3D1", "?" + watchList} {
			watches = append(watches, s.watch(t, "/api/v1/services"+query, accept))
		}
	}
	for _, w := range watches {
		go func() {
			for range w.events {
			}
		}()
	}

	paths := []struct{ path, accept string }{
		{"/api/v1/namespaces/default/services/s1", asJSON},
		{"/api/v1/namespaces/default/services/s1?resourceVersion=0", asJSON},
		{"/api/v1/namespaces/default/services/s1?resourceVersion=0", asProtobuf},
		{"/api/v1/namespaces/default/services/s1?resourceVersion=0", asTable},
		{"/api/v1/namespaces/default/services/s1?resourceVersion=0&includeObject=Object", asTable},
		{"/api/v1/namespaces/default/services/s1?resourceVersion=0", asPartial},
		{"/api/v1/services", asJSON},
		{"/api/v1/services?resourceVersion=0", asJSON},
		{"/api/v1/services?resourceVersion=0", asProtobuf},
		{"/api/v1/services?resourceVersion=0", "application/yaml"},
		{"/api/v1/services", asTable},
		{"/api/v1/services?includeObject=Object", asTable},
		{"/api/v1/services", asPartials},
		{"/api/v1/services?labelSelector=parity%3D1", asJSON},
		{"/api/v1/services?labelSelector=parity%3D1&includeObject=Object", asTable},
		{"/api/v1/services?fieldSelector=metadata.name%3Ds1", asTable},
		{"/api/v1/services?limit=3", asTable},
	}
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := range requests {
				p := paths[(client+i)%len(paths)]
				if response, body := s.request(t, http.MethodGet, p.path, p.accept); response.StatusCode != http.StatusOK {
					t.Errorf("GET %s as %s: %s: %s", p.path, p.accept, response.Status, body)
				}
			}
		})
	}
	// Changes meanwhile, so that events are encoded for several watches at once.
	for i := range count / 2 {
		store(i, service(fmt.Sprintf("s%d", i), labelled("parity", "1"), labelled("changed", "yes")))
	}
	group.Wait()
	if diff := cmp.Diff(before, stored); diff != "" {
		t.Errorf("stored objects changed (-before +after):\n%s", diff)
	}
}
