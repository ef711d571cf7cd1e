// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// installer puts storage into a genericapiserver. It stands in for
// GenericAPIServer.InstallAPIGroups, which describes all types to the last field
// before it returns: see the package openapi.
type installer struct {
	server     *genericapiserver.GenericAPIServer
	config     *genericapiserver.Config
	scheme     *runtime.Scheme
	serializer runtime.NegotiatedSerializer
	types      managedfields.TypeConverter
}

// install serves one version of each group.
func (i *installer) install(groups map[schema.GroupVersion]map[string]rest.Storage) error {
	versions := slices.SortedFunc(maps.Keys(groups), func(a, b schema.GroupVersion) int {
		return strings.Compare(a.Group, b.Group)
	})
	for _, version := range versions {
		if err := i.installVersion(version, groups[version]); err != nil {
			return fmt.Errorf("serving %s: %w", version, err)
		}
	}
	return nil
}

func (i *installer) installVersion(version schema.GroupVersion, storage map[string]rest.Storage) error {
	root := genericapiserver.APIGroupPrefix
	if version.Group == "" {
		root = genericapiserver.DefaultLegacyAPIPrefix
	}
	resources, _, err := i.apiGroupVersion(root, version, storage).InstallREST(i.server.Handler.GoRestfulContainer)
	i.server.RegisterDestroyFunc(func() {
		for _, s := range storage {
			s.Destroy()
		}
	})
	if err != nil {
		return err
	}
	for resource, s := range storage {
		if ready, ok := s.(rest.StorageWithReadiness); ok {
			i.server.StorageReadinessHook.RegisterStorage(metav1.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: resource}, ready)
		}
	}
	i.announce(root, version, resources)
	return nil
}

// announce lists the version in both forms of discovery.
func (i *installer) announce(root string, version schema.GroupVersion, resources []apidiscoveryv2.APIResourceDiscovery) {
	described := apidiscoveryv2.APIVersionDiscovery{
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: version.Version, Resources: resources,
	}
	container := i.server.Handler.GoRestfulContainer
	if root == genericapiserver.DefaultLegacyAPIPrefix {
		manager := i.server.AggregatedLegacyDiscoveryGroupManager
		manager.AddGroupVersion(version.Group, described)
		handler := discovery.NewLegacyRootAPIHandler(i.config.DiscoveryAddresses, i.serializer, root)
		container.Add(discoveryendpoint.WrapAggregatedDiscoveryToHandler(handler, manager, manager).GenerateWebService(root, metav1.APIVersions{}))
		return
	}
	i.server.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, described)
	served := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
	group := metav1.APIGroup{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}
	i.server.DiscoveryGroupManager.AddGroup(group)
	container.Add(discovery.NewAPIGroupHandler(i.serializer, group).WebService())
}

func (i *installer) apiGroupVersion(root string, version schema.GroupVersion, storage map[string]rest.Storage) *genericapi.APIGroupVersion {
	served := map[string][]string{}
	for resource := range storage {
		served[resource] = []string{version.String()}
	}
	return &genericapi.APIGroupVersion{
		Storage:                     storage,
		Root:                        root,
		GroupVersion:                version,
		AllServedVersionsByResource: served,
		OptionsExternalVersion:      &schema.GroupVersion{Version: "v1"},
		Serializer:                  i.serializer,
		ParameterCodec:              runtime.NewParameterCodec(i.scheme),
		Typer:                       i.scheme,
		Creater:                     i.scheme,
		Convertor:                   i.scheme,
		ConvertabilityChecker:       i.scheme,
		Defaulter:                   i.scheme,
		Namer:                       runtime.Namer(meta.NewAccessor()),
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(i.scheme),
		TypeConverter:               i.types,
		EquivalentResourceRegistry:  i.server.EquivalentResourceRegistry,
		Authorizer:                  i.server.Authorizer,
		Admit:                       i.config.AdmissionControl,
		MinRequestTimeout:           time.Duration(i.config.MinRequestTimeout) * time.Second,
		MaxRequestBodyBytes:         i.config.MaxRequestBodyBytes,
	}
}
