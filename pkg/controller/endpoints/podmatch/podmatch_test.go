// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podmatch

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"k8s.io/client-go/informers"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func label(name, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[name] = value }
}

func selector(selector map[string]string) *corev1.Service {
	return kube.Service("s", func(service *corev1.Service) { service.Spec.Selector = selector })
}

func TestPodsOf(t *testing.T) {
	factory := informers.NewSharedInformerFactory(kube.NewCluster().Client(), 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := NewPods(informer); err != nil {
		t.Fatal(err)
	}
	pods, err := NewPods(informer) // of a second controller
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []*corev1.Pod{
		kube.Pod("a", "x", "10.0.0.1", label("tier", "front")),
		kube.Pod("b", "x", "10.0.0.2", label("tier", "back")),
		kube.Pod("c", "y", "10.0.0.3", label("tier", "front")),
		kube.Pod("d", "x", "10.0.0.4", label("tier", "front"), func(pod *corev1.Pod) { pod.Namespace = "other" }),
	} {
		if err := informer.GetStore().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := informer.GetStore().Update(kube.Pod("c", "z", "10.0.0.3")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		selector map[string]string
		want     []string
	}{
		{map[string]string{"app": "x"}, []string{"a", "b"}},
		{map[string]string{"app": "x", "tier": "front"}, []string{"a"}},
		{map[string]string{"app": "y"}, nil},
		{map[string]string{"app": "z"}, []string{"c"}},
		{map[string]string{"app": "x", "nothing": ""}, nil},
		{map[string]string{}, []string{"a", "b", "c"}},
	} {
		found, err := pods.Of(selector(test.selector))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, pod := range found {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("pods with %v (-want +got):\n%s", test.selector, diff)
		}
	}
}

func TestServices(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, selector := range map[string]map[string]string{
		"x": {"app": "x"}, "y": {"app": "y"}, "both": {"tier": "front"}, "none": nil,
	} {
		service := kube.Service(name, func(service *corev1.Service) { service.Spec.Selector = selector })
		if err := indexer.Add(service); err != nil {
			t.Fatal(err)
		}
	}
	services := corelisters.NewServiceLister(indexer)
	old := kube.Pod("p", "x", "10.0.0.1", label("tier", "front"), func(pod *corev1.Pod) { pod.ResourceVersion = "1" })
	edited := func(edit func(*corev1.Pod)) *corev1.Pod {
		pod := old.DeepCopy()
		pod.ResourceVersion = "2"
		edit(pod)
		return pod
	}
	both, all := []string{"ns/both", "ns/x"}, []string{"ns/both", "ns/x", "ns/y"}
	for _, test := range []struct {
		name         string
		old, current any
		want         []string
	}{
		{"new", nil, old, both},
		{"gone", old, nil, both},
		{"gone, its end unseen", cache.DeletedFinalStateUnknown{Obj: old}, nil, both},
		{"resync", old, old, nil},
		{"an annotation", old, edited(func(pod *corev1.Pod) { pod.Annotations = map[string]string{"a": "b"} }), nil},
		{"not ready", old, edited(kube.Unready), both},
		{"terminating", old, edited(kube.Terminating), both},
		{"ended", old, edited(kube.Phase(corev1.PodSucceeded)), both},
		{"another phase", old, edited(kube.Phase(corev1.PodPending)), nil},
		{"another address", old, edited(func(pod *corev1.Pod) { pod.Status.PodIPs[0].IP = "10.0.0.2" }), both},
		{"a node", old, edited(func(pod *corev1.Pod) { pod.Spec.NodeName = "node2" }), both},
		{"another pod of the same name", old, edited(func(pod *corev1.Pod) { pod.UID = "new" }), both},
		{"a label, to those that get or lose it", old, edited(label("app", "y")), []string{"ns/x", "ns/y"}},
		{"a label and the node, to all", old, edited(func(pod *corev1.Pod) {
			label("app", "y")(pod)
			pod.Spec.NodeName = "node2"
		}), all},
	} {
		var got []string
		for key := range Services(services, test.old, test.current) {
			got = append(got, key)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: services (-want +got):\n%s", test.name, diff)
		}
	}
}
