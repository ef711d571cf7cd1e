// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install assembles the storage of all local resources into API groups
// and puts them into a generic API server.
package install

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpoints"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpointslices"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/nodes"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/servicecidrs"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/services"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/streaming"
)

type resource struct {
	version schema.GroupVersion
	name    string
	newREST func(generic.RESTOptionsGetter) (*readonly.REST, error)
}

func (r resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.version.Group, Resource: r.name}
}

func resources() []resource {
	return []resource{
		{corev1.SchemeGroupVersion, "services", services.NewREST},
		{corev1.SchemeGroupVersion, "endpoints", endpoints.NewREST},
		{corev1.SchemeGroupVersion, "nodes", nodes.NewREST},
		{corev1.SchemeGroupVersion, "namespaces", namespaces.NewREST},
		{discoveryv1.SchemeGroupVersion, "endpointslices", endpointslices.NewREST},
		{networkingv1.SchemeGroupVersion, "servicecidrs", servicecidrs.NewREST},
	}
}

// Resources lists what NewAPIGroupInfos needs a store for.
func Resources() []schema.GroupResource {
	var names []schema.GroupResource
	for _, r := range resources() {
		names = append(names, r.groupResource())
	}
	return names
}

// NewAPIGroupInfos builds the storage of all local resources and returns their
// API groups, the core group first, with the readiness of the storage. The
// scheme and the codecs come from pkg/registry/scheme, the parameter codec
// from runtime.NewParameterCodec of that scheme.
//
// The storage runs from this call on. A server that the groups are installed
// in destroys it when it stops; a caller that does not install them must call
// Readiness.Destroy. After an error nothing is left running.
func NewAPIGroupInfos(
	scheme *runtime.Scheme,
	codecs serializer.CodecFactory,
	parameterCodec runtime.ParameterCodec,
	getter generic.RESTOptionsGetter,
) ([]*genericapiserver.APIGroupInfo, *Readiness, error) {
	var infos []*genericapiserver.APIGroupInfo
	byGroup := map[string]*genericapiserver.APIGroupInfo{}
	readiness := &Readiness{}
	for _, r := range resources() {
		storage, err := r.newREST(getter)
		if err != nil {
			readiness.Destroy()
			return nil, nil, fmt.Errorf("building %s: %w", r.groupResource(), err)
		}
		readiness.add(r.groupResource(), storage)

		info, ok := byGroup[r.version.Group]
		if !ok {
			created := genericapiserver.NewDefaultAPIGroupInfo(r.version.Group, scheme, parameterCodec, codecs)
			created.NegotiatedSerializer = streaming.NewNegotiatedSerializer(created.NegotiatedSerializer)
			info = &created
			byGroup[r.version.Group] = info
			infos = append(infos, info)
		}
		versions := info.VersionedResourcesStorageMap
		if versions[r.version.Version] == nil {
			versions[r.version.Version] = map[string]rest.Storage{}
		}
		versions[r.version.Version][r.name] = storage
	}
	return infos, readiness, nil
}

// Install puts the groups into the server: the core group under /api, the
// others under /apis. The OpenAPIV3Config of the server must not be nil, and its
// IgnorePrefixes must cover both, since the view has no OpenAPI definitions of
// its own; IgnorePrefixes returns what is needed.
func Install(server *genericapiserver.GenericAPIServer, infos []*genericapiserver.APIGroupInfo) error {
	var named []*genericapiserver.APIGroupInfo
	for _, info := range infos {
		if len(info.PrioritizedVersions) == 0 || info.PrioritizedVersions[0].Group != corev1.GroupName {
			named = append(named, info)
			continue
		}
		if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, info); err != nil {
			return fmt.Errorf("installing the core group: %w", err)
		}
	}
	if err := server.InstallAPIGroups(named...); err != nil {
		return fmt.Errorf("installing the named groups: %w", err)
	}
	return nil
}

// IgnorePrefixes are the paths for which the server must not build OpenAPI.
func IgnorePrefixes() []string {
	return []string{genericapiserver.DefaultLegacyAPIPrefix, genericapiserver.APIGroupPrefix}
}
