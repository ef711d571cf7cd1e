// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func TestMain(m *testing.M) {
	kube.DiscardLogs()
	goleak.VerifyTestMain(m)
}

// TestRemovedHandlersHearNothing has two controllers on the same informers, of
// which one ends.
func TestRemovedHandlersHearNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
		var counts [2]atomic.Int32
		var controllers [2]Handlers
		for i := range controllers {
			counter := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { counts[i].Add(1) }}
			for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Services().Informer(), factory.Core().V1().Pods().Informer()} {
				if err := controllers[i].Add(informer, counter); err != nil {
					t.Fatal(err)
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer factory.Shutdown()
		defer cancel()
		factory.StartWithContext(ctx)
		check := func(when string, want ...int32) {
			t.Helper()
			kube.Settle()
			for i := range counts {
				if got := counts[i].Load(); got != want[i] {
					t.Errorf("%s: controller %d heard %d events, want %d", when, i, got, want[i])
				}
			}
		}
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("p", "s", "10.0.0.1"))
		check("with both", 2, 2)

		controllers[0].Remove(klog.Background())
		controllers[0].Remove(klog.Background()) // has nothing left to do
		cluster.Put(kube.Service("t"))
		cluster.Put(kube.Pod("q", "t", "10.0.0.2"))
		check("after one has ended", 2, 4)
	})
}

func TestAddToStoppedInformerFails(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	informer.RunWithContext(ctx)
	h := Handlers{}
	if err := h.Add(informer, cache.ResourceEventHandlerFuncs{}); err == nil {
		t.Error("no error")
	}
	h.Remove(klog.Background())
}
