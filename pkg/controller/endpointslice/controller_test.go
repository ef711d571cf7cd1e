// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/record"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

// slicesOf returns the slices of a Service that the controller keeps.
func slicesOf(cluster *kube.Cluster, service string) []*discoveryv1.EndpointSlice {
	var found []*discoveryv1.EndpointSlice
	for _, slice := range kube.All[*discoveryv1.EndpointSlice](cluster, "endpointslices") {
		if slice.Labels[discoveryv1.LabelServiceName] == service && slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy {
			found = append(found, slice)
		}
	}
	slices.SortFunc(found, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// brief writes slices as "IPv4 http:8080 10.0.0.1(ready,serving)".
func brief(slicesOfService []*discoveryv1.EndpointSlice) []string {
	lines := []string{}
	for _, slice := range slicesOfService {
		parts := []string{string(slice.AddressType)}
		for _, port := range slice.Ports {
			parts = append(parts, fmt.Sprintf("%s:%d", *port.Name, *port.Port))
		}
		var endpoints []string
		for _, endpoint := range slice.Endpoints {
			var conditions []string
			for _, c := range []struct {
				name string
				is   *bool
			}{{"ready", endpoint.Conditions.Ready}, {"serving", endpoint.Conditions.Serving}, {"terminating", endpoint.Conditions.Terminating}} {
				if c.is != nil && *c.is {
					conditions = append(conditions, c.name)
				}
			}
			endpoints = append(endpoints, fmt.Sprintf("%s(%s)", strings.Join(endpoint.Addresses, "+"), strings.Join(conditions, ",")))
		}
		slices.Sort(endpoints)
		lines = append(lines, strings.Join(append(parts, endpoints...), " "))
	}
	slices.Sort(lines)
	return lines
}

func checkSlices(t *testing.T, cluster *kube.Cluster, service string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), brief(slicesOf(cluster, service))); diff != "" {
		t.Errorf("slices of %s (-want +got):\n%s", service, diff)
	}
}

func withNodes() *kube.Cluster {
	cluster := kube.NewCluster()
	cluster.Put(kube.Node("node1", "zone1"))
	cluster.Put(kube.Node("node2", "zone2"))
	return cluster
}

func TestControllerFollowsPodsAndServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		defer start(t, cluster).Stop(t)
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"no pods, a placeholder", func() {}, []string{"IPv4"}},
			{"a pod", func() { cluster.Put(kube.Pod("a", "s", "10.0.0.1")) }, []string{"IPv4 http:8080 10.0.0.1(ready,serving)"}},
			{"unready", func() { cluster.Put(kube.Pod("a", "s", "10.0.0.1", kube.Unready)) }, []string{"IPv4 http:8080 10.0.0.1()"}},
			{
				"terminating, still serving", func() { cluster.Put(kube.Pod("a", "s", "10.0.0.1", kube.Terminating)) },
				[]string{"IPv4 http:8080 10.0.0.1(serving,terminating)"},
			},
			{
				"published all the same",
				func() {
					cluster.Put(kube.Service("s", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }))
				},
				[]string{"IPv4 http:8080 10.0.0.1(ready,serving,terminating)"},
			},
			{
				"failed, without a change of its condition",
				func() { cluster.Put(kube.Pod("a", "s", "10.0.0.1", kube.Terminating, kube.Phase(corev1.PodFailed))) },
				[]string{"IPv4"},
			},
			{
				"dual stack, one slice for each family",
				func() {
					cluster.Put(kube.Service("s", func(s *corev1.Service) {
						s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
					}))
					cluster.Put(kube.Pod("b", "s", "10.0.0.2", func(pod *corev1.Pod) {
						pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: "fd00::2"})
					}))
				},
				[]string{"IPv4 http:8080 10.0.0.2(ready,serving)", "IPv6 http:8080 fd00::2(ready,serving)"},
			},
			{
				"one family goes",
				func() {
					cluster.Put(kube.Service("s", func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }))
				},
				[]string{"IPv6 http:8080 fd00::2(ready,serving)"},
			},
		} {
			step.do()
			kube.Pass(time.Second)
			if diff := cmp.Diff(step.want, brief(slicesOf(cluster, "s"))); diff != "" {
				t.Errorf("%s: slices (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

func TestSliceMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s", func(s *corev1.Service) {
			s.Spec.ClusterIP = corev1.ClusterIPNone
			s.Labels = map[string]string{"team": "blue"}
		}))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1", func(pod *corev1.Pod) { pod.Spec.Hostname, pod.Spec.Subdomain = "host", "s" }))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		slice := slicesOf(cluster, "s")[0]
		if !strings.HasPrefix(slice.Name, "s-") || slice.GenerateName != "s-" {
			t.Errorf("name %q from %q", slice.Name, slice.GenerateName)
		}
		wantLabels := map[string]string{
			"team": "blue", discoveryv1.LabelServiceName: "s", discoveryv1.LabelManagedBy: ManagedBy, corev1.IsHeadlessService: "",
		}
		if diff := cmp.Diff(wantLabels, slice.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		owner := slice.OwnerReferences[0]
		if owner.Kind != "Service" || owner.UID != "uid-of-s" || !*owner.Controller || !*owner.BlockOwnerDeletion {
			t.Errorf("owner %+v", owner)
		}
		if slice.Annotations[corev1.EndpointsLastChangeTriggerTime] == "" {
			t.Error("no trigger time")
		}
		endpoint := slice.Endpoints[0]
		if *endpoint.NodeName != "node1" || *endpoint.Zone != "zone1" || *endpoint.Hostname != "host" || endpoint.TargetRef.Name != "a" {
			t.Errorf("endpoint %+v", endpoint)
		}
	})
}

func TestSlicesAreFilledAndNeverTooFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		defer start(t, cluster).Stop(t)
		for i := range 10 {
			cluster.Put(kube.Pod(fmt.Sprint("p", i), "s", fmt.Sprint("10.0.0.", i)))
		}
		kube.Settle()
		total := 0
		for _, slice := range slicesOf(cluster, "s") {
			if len(slice.Endpoints) > maxPerSlice {
				t.Errorf("%d endpoints in a slice", len(slice.Endpoints))
			}
			total += len(slice.Endpoints)
		}
		if total != 10 {
			t.Errorf("%d endpoints in all", total)
		}
	})
}

func TestTrafficDistributionHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		defer start(t, cluster).Stop(t)
		for _, test := range []struct {
			distribution string
			want         *discoveryv1.EndpointHints
		}{
			{corev1.ServiceTrafficDistributionPreferSameZone, &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone1"}}}},
			{corev1.ServiceTrafficDistributionPreferSameNode, &discoveryv1.EndpointHints{
				ForZones: []discoveryv1.ForZone{{Name: "zone1"}}, ForNodes: []discoveryv1.ForNode{{Name: "node1"}},
			}},
			{"", nil},
		} {
			cluster.Put(kube.Service("s", func(s *corev1.Service) {
				if test.distribution != "" {
					s.Spec.TrafficDistribution = &test.distribution
				}
			}))
			kube.Settle()
			if diff := cmp.Diff(test.want, slicesOf(cluster, "s")[0].Endpoints[0].Hints); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.distribution, diff)
			}
		}
	})
}

// TestTopologyHints has the zones of two nodes in equal shares, but while one
// node is not ready.
func TestTopologyHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		for _, name := range []string{"node1", "node2"} {
			node := kube.Get[*corev1.Node](cluster, "nodes", "", name)
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
			cluster.Put(node)
		}
		cluster.Put(kube.Service("s", func(s *corev1.Service) {
			s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		}))
		for i := range 6 {
			cluster.Put(kube.Pod(fmt.Sprint("p", i), "s", fmt.Sprint("10.0.0.", i), func(pod *corev1.Pod) {
				pod.Spec.NodeName = fmt.Sprint("node", 1+i%2)
			}))
		}
		defer start(t, cluster).Stop(t)
		kube.Settle()
		hinted := func() (count int) {
			for _, slice := range slicesOf(cluster, "s") {
				for _, endpoint := range slice.Endpoints {
					if endpoint.Hints != nil && len(endpoint.Hints.ForZones) > 0 {
						count++
					}
				}
			}
			return count
		}
		if hinted() != 6 {
			t.Errorf("%d endpoints with hints, want 6", hinted())
		}
		// Each change of the nodes counts from the next sync of the Service on.
		for i, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
			node := kube.Get[*corev1.Node](cluster, "nodes", "", "node2")
			node.Status.Conditions[0].Status = ready
			cluster.Put(node)
			kube.Pass(time.Second)
			service := kube.Get[*corev1.Service](cluster, "services", kube.Namespace, "s")
			service.Annotations["sync"] = fmt.Sprint(i)
			cluster.Put(service)
			kube.Settle()
			want := 0 // in one zone they would be of no use
			if ready == corev1.ConditionTrue {
				want = 6
			}
			if hinted() != want {
				t.Errorf("%d endpoints with hints, want %d", hinted(), want)
			}
		}
	})
}

func TestPodsOnUnknownNodesWaitForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		cluster.Put(kube.Pod("b", "s", "10.0.0.2", func(pod *corev1.Pod) { pod.Spec.NodeName = "node9" }))
		recorder := record.NewFakeRecorder(100)
		defer startWith(t, cluster, recorder).Stop(t)
		kube.Pass(time.Hour)
		checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving)")
		if len(recorder.Events) != 1 || len(cluster.Writes()) != 1 {
			t.Errorf("%d events, writes %q", len(recorder.Events), cluster.Writes())
		}
		cluster.Put(kube.Node("node9", ""))
		kube.Pass(time.Second)
		checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving) 10.0.0.2(ready,serving)")
	})
}

func TestUnmanagedServicesKeepTheirSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		for _, edit := range []func(*corev1.Service){
			func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
			func(s *corev1.Service) { s.Spec.Selector = nil },
		} {
			cluster.Put(kube.Service("s", edit))
			kube.Settle()
			cluster.Put(kube.Pod("b", "s", "10.0.0.2"))
			kube.Settle()
			checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving)")
			cluster.Put(kube.Service("s"))
			kube.Settle()
			checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving) 10.0.0.2(ready,serving)")
			cluster.Remove("pods", kube.Namespace, "b")
			kube.Settle()
		}
	})
}

func TestOtherWritersAreCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		first := start(t, cluster)
		kube.Settle()
		first.Stop(t)
		// This controller has not written the slice itself.
		defer start(t, cluster).Stop(t)
		kube.Settle()
		edit := func(edit func(*discoveryv1.EndpointSlice)) {
			slice := slicesOf(cluster, "s")[0]
			edit(slice)
			cluster.Put(slice)
		}
		for _, disturb := range []func(){
			func() { cluster.Remove("endpointslices", kube.Namespace, slicesOf(cluster, "s")[0].Name) },
			func() { edit(func(slice *discoveryv1.EndpointSlice) { slice.Endpoints = nil }) },
			func() {
				edit(func(slice *discoveryv1.EndpointSlice) {
					slice.Endpoints[0].Addresses = []string{"192.0.2.2", "192.0.2.1"}
					slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{})
				})
			},
			func() { edit(func(slice *discoveryv1.EndpointSlice) { slice.Labels["strange"] = "label" }) },
			func() {
				edit(func(slice *discoveryv1.EndpointSlice) { slice.Labels[discoveryv1.LabelServiceName] = "other" })
			},
			func() {
				edit(func(slice *discoveryv1.EndpointSlice) { delete(slice.Labels, discoveryv1.LabelManagedBy) })
			},
		} {
			disturb()
			kube.Settle()
			checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving)")
		}
	})
}

// TestStaleCacheIsGivenUpInTheEnd deletes a slice so that the controller's cache
// never shows it.
func TestStaleCacheIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := withNodes()
		cluster.Put(kube.Service("s"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		cluster.Hold("endpointslices")
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		kube.Pass(time.Second)
		writes := len(cluster.Writes())
		cluster.Put(kube.Pod("b", "s", "10.0.0.2"))
		kube.Pass(20 * time.Second)
		if got := cluster.Writes()[writes:]; len(got) > 0 {
			t.Errorf("written from a stale cache: %q", got)
		}
		kube.Settle()
		cluster.Release("endpointslices")
		kube.Settle()
		checkSlices(t, cluster, "s", "IPv4 http:8080 10.0.0.1(ready,serving) 10.0.0.2(ready,serving)")
	})
}
