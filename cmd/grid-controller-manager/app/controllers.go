// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpointslice"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpointslicemirroring"
	"github.com/grid-apiserver/grid-apiserver/pkg/controller/servicegrid"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/informers/externalversions"
)

// runner is a controller: it runs until ctx ends. It must be called even if there is nothing to do any more.
type runner func(ctx context.Context, workers int) error

// clients are what controllers talk to the cluster with.
type clients struct {
	core  kubernetes.Interface
	grids versioned.Interface
}

func newClients(config *rest.Config) (clients, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("make a client: %w", err)
	}
	grids, err := versioned.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("make a client for %s: %w", superedgev1.GroupName, err)
	}
	return clients{core: core, grids: grids}, nil
}

// parts are what controllers are made of.
type parts struct {
	clients
	broadcaster   record.EventBroadcaster
	scheme        *runtime.Scheme
	informers     informers.SharedInformerFactory
	gridInformers externalversions.SharedInformerFactory
}

func newParts(c clients, config *options.Config, broadcaster record.EventBroadcaster) *parts {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(superedgev1.AddToScheme(scheme))
	return &parts{
		clients:       c,
		broadcaster:   broadcaster,
		scheme:        scheme,
		informers:     informers.NewSharedInformerFactory(c.core, config.ResyncPeriod),
		gridInformers: externalversions.NewSharedInformerFactory(c.grids, config.ResyncPeriod),
	}
}

func (p *parts) recorder(component string) record.EventRecorder {
	return p.broadcaster.NewRecorder(p.scheme, corev1.EventSource{Component: component})
}

// builders make the controllers, by their names.
var builders = map[string]func(*parts) (runner, error){
	options.ServiceGrid: func(p *parts) (runner, error) {
		c, err := servicegrid.New(p.core.CoreV1(), p.grids.SuperedgeV1(), p.recorder(servicegrid.Component),
			p.gridInformers.Superedge().V1().ServiceGrids(), p.informers.Core().V1().Services())
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	},
	options.Endpoints: func(p *parts) (runner, error) {
		core := p.informers.Core().V1()
		c, err := endpoints.New(p.core.CoreV1(), p.recorder(endpoints.Component), core.Services(), core.Pods(), core.Endpoints())
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	},
	options.EndpointSlice: func(p *parts) (runner, error) {
		core := p.informers.Core().V1()
		c, err := endpointslice.New(endpointslice.Config{
			Client: p.core, Recorder: p.recorder(endpointslice.Component),
			Services: core.Services(), Pods: core.Pods(), Nodes: core.Nodes(), Slices: p.informers.Discovery().V1().EndpointSlices(),
		})
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	},
	options.EndpointSliceMirroring: func(p *parts) (runner, error) {
		core := p.informers.Core().V1()
		c, err := endpointslicemirroring.New(p.core.DiscoveryV1(), p.recorder(endpointslicemirroring.Component),
			core.Services(), core.Endpoints(), p.informers.Discovery().V1().EndpointSlices())
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	},
}
