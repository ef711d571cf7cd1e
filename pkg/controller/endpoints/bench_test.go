// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/podmatch"
)

// BenchmarkPodChange is what one pod that becomes ready or unready costs, from
// its event to the object to write, in one namespace with 1,000 Services of ten
// pods each, or with two of 5,000.
func BenchmarkPodChange(b *testing.B) {
	for _, services := range []int{1000, 2} {
		b.Run(fmt.Sprintf("services=%d/pods=10000", services), func(b *testing.B) {
			c := filled(b, services, 10000)
			ready := kube.Pod("p00000", "s0", "10.0.0.0")
			ready.ResourceVersion = "1"
			unready := kube.Pod("p00000", "s0", "10.0.0.0", kube.Unready)
			unready.ResourceVersion = "2"
			b.ReportAllocs()
			for b.Loop() {
				for key := range podmatch.Services(c.services, ready, unready) {
					if err := c.sync(b.Context(), key); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkStart is the first sync of all Services.
func BenchmarkStart(b *testing.B) {
	c := filled(b, 1000, 10000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range 1000 {
			if err := c.sync(b.Context(), fmt.Sprint(kube.Namespace, "/s", i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// filled returns a controller whose caches hold what it needs, also the right
// Endpoints. It does not run.
func filled(b *testing.B, services, pods int) *Controller {
	b.Helper()
	client := kube.NewCluster().Client()
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := build(kubernetes.Interface(client), factory)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.stopQueue)
	add := func(store interface{ Add(any) error }, object any) {
		if err := store.Add(object); err != nil {
			b.Fatal(err)
		}
	}
	selected := map[string][]*corev1.Pod{}
	for i := range pods {
		app := fmt.Sprint("s", i%services)
		pod := kube.Pod(fmt.Sprintf("p%05d", i), app, fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, i%256))
		selected[app] = append(selected[app], pod)
		add(factory.Core().V1().Pods().Informer().GetStore(), pod)
	}
	for i := range services {
		service := kube.Service(fmt.Sprint("s", i))
		add(factory.Core().V1().Services().Informer().GetStore(), service)
		endpoints := Plan(nil, service, selected[service.Name], service.CreationTimestamp.Time)
		endpoints.ResourceVersion = "1"
		add(factory.Core().V1().Endpoints().Informer().GetStore(), endpoints)
	}
	return c
}
