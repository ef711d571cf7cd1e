// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func list(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: version, APIResources: resources}
}

func resource(name, kind string, namespaced bool, verbs ...string) metav1.APIResource {
	if verbs == nil {
		verbs = []string{"get", "list", "watch", "delete"}
	}
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: verbs}
}

func group(name string, preferred string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: preferred}}
	for _, version := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: version})
	}
	return g
}

func TestNewKinds(t *testing.T) {
	groups := []*metav1.APIGroup{group("", "v1", "v1"), group("x", "v2", "v2", "v1beta1", "v1alpha1")}
	lists := []*metav1.APIResourceList{
		list("v1", resource("pods", "Pod", true), resource("pods/status", "Pod", true), resource("nodes", "Node", false),
			resource("events", "Event", true), resource("bindings", "Binding", true, "create")),
		list("x/v1alpha1", resource("olds", "Old", true), resource("things", "Thing", true)),
		list("x/v1beta1", resource("olds", "Old", true), resource("things", "Thing", true)),
		list("x/v2", resource("things", "Thing", true)),
		list("bad/version/here", resource("bads", "Bad", true)),
	}
	got := newKinds(groups, lists, []schema.GroupResource{corev1.Resource("events")})
	x := func(version string) schema.GroupVersion { return schema.GroupVersion{Group: "x", Version: version} }
	want := map[schema.GroupVersionResource]schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithResource("pods"):  corev1.SchemeGroupVersion.WithKind("Pod"),
		corev1.SchemeGroupVersion.WithResource("nodes"): corev1.SchemeGroupVersion.WithKind("Node"),
		x("v2").WithResource("things"):                  x("v2").WithKind("Thing"),
		x("v1beta1").WithResource("olds"):               x("v1beta1").WithKind("Old"),
	}
	if diff := cmp.Diff(want, got.followed); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
	for _, gvk := range []schema.GroupVersionKind{
		x("v1alpha1").WithKind("Thing"), x("v2").WithKind("Thing"), corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithKind("Binding"),
	} {
		if k, ok := got.known[gvk]; !ok || k.resource.GroupVersion() != gvk.GroupVersion() {
			t.Errorf("%v is known as %v", gvk, k)
		}
	}
	if k := got.known[corev1.SchemeGroupVersion.WithKind("Node")]; k.namespaced {
		t.Error("nodes are in no namespace")
	}
}

func TestKindsOfFailedVersionsAreKept(t *testing.T) {
	groups := []*metav1.APIGroup{group("x", "v2", "v2", "v1"), group("y", "v1", "v1")}
	old := newKinds(groups, []*metav1.APIResourceList{
		list("x/v2", resource("things", "Thing", true)), list("x/v1", resource("things", "Thing", true), resource("olds", "Old", true)),
		list("y/v1", resource("others", "Other", true)),
	}, nil)
	failed := map[schema.GroupVersion]error{{Group: "x", Version: "v2"}: errors.New("away")}
	got := newKinds(groups, []*metav1.APIResourceList{list("x/v1", resource("things", "Thing", true))}, nil)
	got.keep(old, failed)
	want := map[schema.GroupVersionResource]schema.GroupVersionKind{
		{Group: "x", Version: "v1", Resource: "things"}: {Group: "x", Version: "v1", Kind: "Thing"},
	}
	if diff := cmp.Diff(want, got.followed); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
	if _, ok := got.known[schema.GroupVersionKind{Group: "x", Version: "v2", Kind: "Thing"}]; !ok {
		t.Error("a kind of the failed version was dropped")
	}
	if _, ok := got.known[schema.GroupVersionKind{Group: "y", Version: "v1", Kind: "Other"}]; ok {
		t.Error("a kind that is gone was kept")
	}

	all := newKinds(groups, nil, nil)
	all.keep(old, failed)
	if _, ok := all.followed[schema.GroupVersionResource{Group: "x", Version: "v2", Resource: "things"}]; !ok || len(all.followed) != 1 {
		t.Errorf("followed %v, want the resource of the failed version", all.followed)
	}
}
