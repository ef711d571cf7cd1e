// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

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
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func copies(cluster *kube.Cluster, service string) []*discoveryv1.EndpointSlice {
	var found []*discoveryv1.EndpointSlice
	for _, slice := range kube.All[*discoveryv1.EndpointSlice](cluster, "endpointslices") {
		if slice.Labels[discoveryv1.LabelServiceName] == service && slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy {
			found = append(found, slice)
		}
	}
	return found
}

func manual(service *corev1.Service) { service.Spec.Selector = nil }

const mirror = "IPv4 http:80 192.0.2.1"

func TestControllerFollowsEndpointsAndServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Endpoints("s"))
		defer start(t, cluster).Stop(t)
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"no Service", func() {}, []string{}},
			{"a Service without a selector", func() { cluster.Put(kube.Service("s", manual)) }, []string{mirror}},
			{"another address", func() {
				cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].IP = "192.0.2.2" }))
			}, []string{"IPv4 http:80 192.0.2.2"}},
			{"no address", func() {
				cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) { e.Subsets = nil }))
			}, []string{}},
			{"the address again", func() { cluster.Put(kube.Endpoints("s")) }, []string{mirror}},
			{"a selector", func() { cluster.Put(kube.Service("s")) }, []string{}},
			{"no selector", func() { cluster.Put(kube.Service("s", manual)) }, []string{mirror}},
			{"not to be mirrored", func() {
				cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) { e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"} }))
			}, []string{}},
			{"the label with another value", func() {
				cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) { e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "yes"} }))
			}, []string{mirror}},
			{"a leader election", func() {
				cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) {
					e.Annotations = map[string]string{resourcelock.LeaderElectionRecordAnnotationKey: "{}"}
				}))
			}, []string{}},
			{"none", func() { cluster.Put(kube.Endpoints("s")) }, []string{mirror}},
			{"the Endpoints go", func() { cluster.Remove("endpoints", kube.Namespace, "s") }, []string{}},
			{"they come again", func() { cluster.Put(kube.Endpoints("s")) }, []string{mirror}},
			{"the Service goes", func() { cluster.Remove("services", kube.Namespace, "s") }, []string{}},
		} {
			step.do()
			kube.Pass(time.Second)
			if diff := cmp.Diff(step.want, briefs(copies(cluster, "s"))); diff != "" {
				t.Errorf("%s: slices (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

func TestOtherWritersAreCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s", manual))
		cluster.Put(kube.Endpoints("s"))
		first := start(t, cluster)
		kube.Settle()
		first.Stop(t)
		defer start(t, cluster).Stop(t)
		kube.Settle()
		if writes := cluster.Writes(); len(writes) != 1 {
			t.Errorf("written again after a restart: %q", writes)
		}
		for _, disturb := range []func(*discoveryv1.EndpointSlice){
			func(slice *discoveryv1.EndpointSlice) {
				cluster.Remove("endpointslices", slice.Namespace, slice.Name)
			},
			func(slice *discoveryv1.EndpointSlice) {
				slice.Endpoints = nil
				cluster.Put(slice)
			},
			func(slice *discoveryv1.EndpointSlice) {
				slice.Labels[discoveryv1.LabelServiceName] = "other"
				cluster.Put(slice)
			},
		} {
			disturb(copies(cluster, "s")[0])
			kube.Settle()
			if diff := cmp.Diff([]string{mirror}, briefs(copies(cluster, "s"))); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
			if other := copies(cluster, "other"); len(other) > 0 {
				t.Errorf("slices of a Service that does not exist: %q", briefs(other))
			}
		}
	})
}

func TestLimitIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s", manual))
		cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) {
			for i := range 1004 {
				e.Subsets[0].Addresses = append(e.Subsets[0].Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250)})
			}
			e.Subsets[0].NotReadyAddresses = addresses("192.0.2.9")
		}))
		recorder := record.NewFakeRecorder(10)
		defer startWith(t, cluster, recorder).Stop(t)
		kube.Settle()
		slice := copies(cluster, "s")[0]
		if len(slice.Endpoints) != 1000 {
			t.Errorf("%d endpoints", len(slice.Endpoints))
		}
		slice.Endpoints = nil
		cluster.Put(slice)
		kube.Settle()
		if len(recorder.Events) != 1 {
			t.Fatalf("%d events", len(recorder.Events))
		}
		if event := <-recorder.Events; !strings.Contains(event, "TooManyAddressesToMirror") || !strings.Contains(event, "6 addresses") {
			t.Errorf("event %q", event)
		}
	})
}

// TestSlicesMirrorEndpoints plays random changes, lag, failures, other writers
// and restarts.
func TestSlicesMirrorEndpoints(t *testing.T) {
	kube.Play(t, func(r *kube.Random) { r.OnSlices, r.ByHand = true, true }, start, func(cluster *kube.Cluster) error {
		services := kube.All[*corev1.Service](cluster, "services")
		want := map[string][]string{}
		for key, endpoints := range kube.All[*corev1.Endpoints](cluster, "endpoints") {
			_, elects := endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
			if services[key] == nil || services[key].Spec.Selector != nil || elects || endpoints.Labels[discoveryv1.LabelSkipMirror] == "true" {
				continue
			}
			for _, subset := range endpoints.Subsets {
				for _, port := range subset.Ports {
					for _, address := range subset.Addresses {
						want[endpoints.Name] = append(want[endpoints.Name], fmt.Sprint(port.Name, port.Port, " ", address.IP, true))
					}
					for _, address := range subset.NotReadyAddresses {
						want[endpoints.Name] = append(want[endpoints.Name], fmt.Sprint(port.Name, port.Port, " ", address.IP, false))
					}
				}
			}
		}
		got := map[string][]string{}
		for _, slice := range kube.All[*discoveryv1.EndpointSlice](cluster, "endpointslices") {
			if slice.Labels[discoveryv1.LabelManagedBy] != ManagedBy {
				continue
			}
			name := slice.Labels[discoveryv1.LabelServiceName]
			for _, port := range slice.Ports {
				for _, endpoint := range slice.Endpoints {
					got[name] = append(got[name], fmt.Sprint(*port.Name, *port.Port, " ", endpoint.Addresses[0], *endpoint.Conditions.Ready))
				}
			}
		}
		for _, lists := range []map[string][]string{want, got} {
			for _, list := range lists {
				slices.Sort(list)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("endpoints of slices (-want +got):\n%s", diff)
		}
		return nil
	})
}
