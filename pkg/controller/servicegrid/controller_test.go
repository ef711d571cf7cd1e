// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/informers/externalversions"
)

// TestRun runs the whole controller with informers, on a clock of its own.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.mustCreate(t, newGrid(nil))
		client, gridClient := api.clients()
		coreFactory := informers.NewSharedInformerFactory(client, time.Second)
		gridFactory := externalversions.NewSharedInformerFactory(gridClient, time.Second)
		c, err := New(client.CoreV1(), gridClient.SuperedgeV1(), &eventList{},
			gridFactory.Superedge().V1().ServiceGrids(), coreFactory.Core().V1().Services())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, 3) }()

		// As long as the informer of the Services has not synced, every Service would seem to be missing.
		gridFactory.StartWithContext(ctx)
		<-time.After(time.Minute)
		if n := api.writeCount(); n > 0 {
			t.Errorf("%d writes before the start", n)
		}
		coreFactory.StartWithContext(ctx)
		<-time.After(time.Second)
		service := api.service(serviceKey)
		if service == nil {
			t.Fatal("no Service")
		}

		// Thirty resyncs write nothing.
		before := api.writeCount()
		<-time.After(30 * time.Second)
		if n := api.writeCount(); n != before {
			t.Errorf("%d writes in the steady state", n-before)
		}

		api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template.Ports[0].Port = 81 })
		api.editService(t, func(s *corev1.Service) { s.Spec.Selector = nil })
		<-time.After(time.Second)
		after := api.service(serviceKey)
		if after.Spec.Ports[0].Port != 81 || after.Spec.Selector["app"] != "g" || after.Spec.ClusterIP != service.Spec.ClusterIP {
			t.Errorf("%+v", after.Spec)
		}

		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		coreFactory.Shutdown()
		gridFactory.Shutdown()
	})
}

func TestRunEndsThoughTheInformersNeverSync(t *testing.T) {
	client, gridClient := newFakeAPI().clients()
	c, err := New(client.CoreV1(), gridClient.SuperedgeV1(), &eventList{},
		externalversions.NewSharedInformerFactory(gridClient, 0).Superedge().V1().ServiceGrids(),
		informers.NewSharedInformerFactory(client, 0).Core().V1().Services())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx, 1); err != nil {
		t.Error(err)
	}
}
