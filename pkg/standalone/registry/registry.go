// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry puts together the storage of all built-in kinds of the
// standalone server.
package registry

import (
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/apps"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/coordination"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/core"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/discovery"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/event"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/namespace"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/networking"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/pod"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/rbac"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/superedge"
)

// Config says what is not the same in every server.
type Config struct {
	// Service has the ranges that Services are allocated from.
	Service service.Config
	// EventTTL is how long an Event is kept after it was last written. It must
	// be positive.
	EventTTL time.Duration
}

// New returns the storage of every kind, by version and then by resource, as in
// "pods" and "pods/status". The events of both groups are one storage. On an
// error nothing is left running but what the getter has started.
func New(getter generic.RESTOptionsGetter, cfg Config) (map[schema.GroupVersion]map[string]rest.Storage, error) {
	all := map[schema.GroupVersion]map[string]rest.Storage{}
	for _, part := range []struct {
		version    schema.GroupVersion
		newStorage func(generic.RESTOptionsGetter) (map[string]rest.Storage, error)
	}{
		{corev1.SchemeGroupVersion, core.NewStorage},
		{corev1.SchemeGroupVersion, namespace.NewStorage},
		{corev1.SchemeGroupVersion, pod.NewStorage},
		{corev1.SchemeGroupVersion, func(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
			return service.NewStorage(getter, cfg.Service)
		}},
		{corev1.SchemeGroupVersion, func(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
			return event.NewStorage(getter, cfg.EventTTL)
		}},
		{appsv1.SchemeGroupVersion, apps.NewStorage},
		{coordinationv1.SchemeGroupVersion, coordination.NewStorage},
		{discoveryv1.SchemeGroupVersion, discovery.NewStorage},
		{networkingv1.SchemeGroupVersion, networking.NewStorage},
		{rbacv1.SchemeGroupVersion, rbac.NewStorage},
		{superedgev1.SchemeGroupVersion, superedge.NewStorage},
	} {
		storage, err := part.newStorage(getter)
		if err != nil {
			return nil, fmt.Errorf("serving %s: %w", part.version, err)
		}
		if all[part.version] == nil {
			all[part.version] = map[string]rest.Storage{}
		}
		maps.Copy(all[part.version], storage)
	}
	all[eventsv1.SchemeGroupVersion] = map[string]rest.Storage{"events": all[corev1.SchemeGroupVersion]["events"]}
	return all, nil
}
