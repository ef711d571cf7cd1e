// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
)

// collections are the cluster-wide paths of all local resources.
var collections = map[string]string{
	"services":       "/api/v1/services",
	"endpoints":      "/api/v1/endpoints",
	"nodes":          "/api/v1/nodes",
	"namespaces":     "/api/v1/namespaces",
	"endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
	"servicecidrs":   "/apis/networking.k8s.io/v1/servicecidrs",
}

func TestObjectsAreTheSameInEveryEncodingAndPath(t *testing.T) {
	s := newServer(t)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{
			{
				Addresses:  []string{"10.1.0.9"},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
				NodeName:   ptr.To("n2"), Zone: ptr.To("z1"),
				Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z1"}}},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web-a", UID: "1"},
			},
			{Addresses: []string{"10.1.0.1"}},
		},
	}
	want := slice.DeepCopy()
	want.ResourceVersion = strconv.FormatUint(s.put(t, slicesResource, "default/web-1", slice), 10)

	for _, contentType := range []string{asJSON, asProtobuf} {
		client := s.client(t, contentType).DiscoveryV1()
		for _, namespace := range []string{"default", ""} {
			t.Run(fmt.Sprintf("%s in %q", contentType, namespace), func(t *testing.T) {
				got, err := client.EndpointSlices("default").Get(t.Context(), "web-1", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("GET (-want +got):\n%s", diff)
				}
				for _, revision := range []string{"", "0", want.ResourceVersion} {
					list, err := client.EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: revision})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff([]discoveryv1.EndpointSlice{*want}, list.Items); diff != "" {
						t.Errorf("LIST from %q (-want +got):\n%s", revision, diff)
					}
				}
				w, err := client.EndpointSlices(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				if diff := cmp.Diff(watch.Event{Type: watch.Added, Object: want}, <-w.ResultChan()); diff != "" {
					t.Errorf("WATCH (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestObjectsSayTheirKind(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/web", service("web"))
	want := metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	for _, query := range []string{"", "?resourceVersion=0"} {
		got := get[corev1.Service](t, s, "/api/v1/namespaces/default/services/web"+query, asJSON)
		if diff := cmp.Diff(want, got.TypeMeta); diff != "" {
			t.Errorf("GET %s (-want +got):\n%s", query, diff)
		}
	}
	for name, path := range map[string]string{"initial": "/api/v1/services", "later": "/api/v1/services?resourceVersion=" + strconv.FormatUint(initialRevision, 10)} {
		if diff := cmp.Diff(want, s.watch(t, path, asJSON).next().metadata(t).TypeMeta); diff != "" {
			t.Errorf("%s event (-want +got):\n%s", name, diff)
		}
	}
}

func TestListsCarryARevision(t *testing.T) {
	s := newServer(t)
	current := strconv.FormatUint(initialRevision, 10)
	for resource, path := range collections {
		for _, accept := range []string{asJSON, asTable, asPartials} {
			for _, query := range []string{"", "?resourceVersion=0", "?watch=false", "?limit=5", "?fieldSelector=metadata.name%3Dabsent"} {
				t.Run(resource+query+" "+accept, func(t *testing.T) {
					got := get[struct {
						metav1.ListMeta `json:"metadata"`
						Items           []any
						Rows            []any
					}](t, s, path+query, accept)
					if got.ResourceVersion != current {
						t.Errorf("got resourceVersion %q, want %s", got.ResourceVersion, current)
					}
					// The stock conversion to metadata has null here.
					if accept != asPartials && got.Items == nil && got.Rows == nil {
						t.Error("items are null, want []")
					}
				})
			}
		}
	}
}

func TestUnknownNameIsNotFound(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/api/v1/namespaces/default/services/absent", "/api/v1/nodes/absent", "/api/v1/nodes/absent?resourceVersion=0"} {
		if status, _ := getStatus(t, s, path, http.StatusNotFound); status.Reason != metav1.StatusReasonNotFound {
			t.Errorf("GET %s: reason %s", path, status.Reason)
		}
	}
}

func TestSelectors(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a", labelled("tier", "front")))
	s.put(t, servicesResource, "default/b", service("b", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }))
	s.put(t, servicesResource, "other/c", service("c", labelled("tier", "back"), func(s *corev1.Service) {
		s.Namespace, s.Spec.Type = "other", corev1.ServiceTypeExternalName
	}))
	for name, node := range map[string]*corev1.Node{
		"n1": {ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		"n2": {ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: corev1.NodeSpec{Unschedulable: true}},
	} {
		s.put(t, corev1.Resource("nodes"), name, node)
	}
	s.put(t, corev1.Resource("namespaces"), "old", &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "old"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
	})
	s.put(t, corev1.Resource("namespaces"), "new", &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	})

	tests := []struct {
		path string
		want []string
	}{
		{"/api/v1/services", []string{"a", "b", "c"}},
		{"/api/v1/namespaces/default/services", []string{"a", "b"}},
		{"/api/v1/services?labelSelector=tier", []string{"a", "c"}},
		{"/api/v1/services?labelSelector=tier%3Dback", []string{"c"}},
		{"/api/v1/services?labelSelector=tier!%3Dback", []string{"a", "b"}},
		{"/api/v1/services?fieldSelector=metadata.name%3Da", []string{"a"}},
		{"/api/v1/services?fieldSelector=metadata.namespace%3Dother", []string{"c"}},
		{"/api/v1/services?fieldSelector=metadata.namespace%3Dother,metadata.name%3Da", nil},
		{"/api/v1/services?fieldSelector=spec.type%3DExternalName", []string{"c"}},
		{"/api/v1/services?fieldSelector=spec.clusterIP!%3DNone", []string{"a", "c"}},
		{"/api/v1/nodes?fieldSelector=metadata.name%3Dn2", []string{"n2"}},
		{"/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", []string{"n2"}},
		{"/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse", []string{"n1"}},
		{"/api/v1/namespaces?fieldSelector=status.phase%3DTerminating", []string{"old"}},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			for _, revision := range []string{"", "0"} {
				path := test.path
				if revision != "" {
					separator := "?"
					if strings.Contains(path, "?") {
						separator = "&"
					}
					path += separator + "resourceVersion=" + revision
				}
				var names []string
				for _, item := range get[metav1.PartialObjectMetadataList](t, s, path, asPartials).Items {
					names = append(names, item.Name)
				}
				if diff := cmp.Diff(test.want, names); diff != "" {
					t.Errorf("from %q (-want +got):\n%s", revision, diff)
				}
			}
		})
	}
}

func TestUnknownFieldLabelIsABadRequest(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{
		"/api/v1/services?fieldSelector=spec.externalName%3Da",
		"/api/v1/endpoints?fieldSelector=subsets%3Da",
		"/api/v1/nodes?fieldSelector=metadata.namespace%3Da",
		"/api/v1/namespaces?fieldSelector=name%3Da",
		"/apis/discovery.k8s.io/v1/endpointslices?fieldSelector=addressType%3DIPv4",
		"/apis/networking.k8s.io/v1/servicecidrs?fieldSelector=spec.cidrs%3Da",
		"/api/v1/services?watch=1&fieldSelector=spec.externalName%3Da",
	} {
		if status, _ := getStatus(t, s, path, http.StatusBadRequest); status.Reason != metav1.StatusReasonBadRequest {
			t.Errorf("GET %s: reason %s", path, status.Reason)
		}
	}
}

func TestWriteVerbsAreNotAllowed(t *testing.T) {
	s := newServer(t)
	for resource, path := range collections {
		object := path + "/x"
		if resource == "services" || resource == "endpoints" || resource == "endpointslices" {
			object = strings.Replace(path, "/v1/", "/v1/namespaces/default/", 1) + "/x"
		}
		collection := strings.TrimSuffix(object, "/x")
		for _, request := range []struct{ method, path string }{
			{http.MethodPost, collection},
			{http.MethodDelete, collection},
			{http.MethodPut, object},
			{http.MethodPatch, object},
			{http.MethodDelete, object},
		} {
			response, body := s.request(t, request.method, request.path, asJSON)
			if response.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: got %s, want 405: %s", request.method, request.path, response.Status, body)
			}
		}
	}
}

func TestDiscoveryNames(t *testing.T) {
	s := newServer(t)
	want := map[string]metav1.APIResource{
		"services":       {SingularName: "service", Namespaced: true, Kind: "Service", ShortNames: []string{"svc"}, Categories: []string{"all"}},
		"endpoints":      {SingularName: "endpoints", Namespaced: true, Kind: "Endpoints", ShortNames: []string{"ep"}},
		"nodes":          {SingularName: "node", Kind: "Node", ShortNames: []string{"no"}},
		"namespaces":     {SingularName: "namespace", Kind: "Namespace", ShortNames: []string{"ns"}},
		"endpointslices": {SingularName: "endpointslice", Namespaced: true, Kind: "EndpointSlice"},
		"servicecidrs":   {SingularName: "servicecidr", Kind: "ServiceCIDR"},
	}
	got := map[string]metav1.APIResource{}
	for _, path := range []string{"/api/v1", "/apis/discovery.k8s.io/v1", "/apis/networking.k8s.io/v1"} {
		for _, resource := range get[metav1.APIResourceList](t, s, path, asJSON).APIResources {
			if diff := cmp.Diff(metav1.Verbs{"get", "list", "watch"}, resource.Verbs); diff != "" {
				t.Errorf("verbs of %s (-want +got):\n%s", resource.Name, diff)
			}
			name := resource.Name
			resource.Name, resource.Verbs = "", nil
			got[name] = resource
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("discovery (-want +got):\n%s", diff)
	}
	if len(got) != len(install.Resources()) {
		t.Errorf("got %d resources, want %d", len(got), len(install.Resources()))
	}
}
