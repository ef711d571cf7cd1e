// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/crd"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/openapi"
)

// publishCustomResources keeps discovery, the documents, and those controllers
// that follow all kinds up to date with what is defined.
func (s *Server) publishCustomResources(documents *openapi.Services) error {
	if s.custom == nil {
		return nil
	}
	definitions := s.custom.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	if _, err := definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.controllers.discoverKinds() },
		UpdateFunc: func(_, _ any) { s.controllers.discoverKinds() },
		DeleteFunc: func(any) { s.controllers.discoverKinds() },
	}); err != nil {
		return err
	}
	return s.custom.Publish(crd.Front{
		Groups: s.generic.DiscoveryGroupManager, V2: documents.V2, StaticV2: documents.Built, V3: documents.V3,
	})
}
