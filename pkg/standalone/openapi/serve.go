// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	genericmux "k8s.io/apiserver/pkg/server/mux"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Services serve the documents.
type Services struct {
	V2 *handler.OpenAPIService
	V3 *handler3.OpenAPIService
	// Built is the document that V2 begins with.
	Built cached.Value[*spec.Swagger]
}

// Serve answers /openapi/v2 and /openapi/v3 with what describes the web services
// of container. All of them must have been added; they are read at the first request.
func (m *Models) Serve(container *restful.Container, mux *genericmux.PathRecorderMux) (*Services, error) {
	built := m.v2(container)
	services := &Services{V2: handler.NewOpenAPIServiceLazy(built), V3: handler3.NewOpenAPIService(), Built: built}
	services.V2.RegisterOpenAPIVersionedService("/openapi/v2", mux)
	if err := services.V3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux); err != nil {
		return nil, fmt.Errorf("serving OpenAPI v3: %w", err)
	}
	for _, service := range container.RegisteredWebServices() {
		if describes(service.RootPath()) {
			services.V3.UpdateGroupVersionLazy(strings.TrimPrefix(service.RootPath(), "/"), once(func() (*spec3.OpenAPI, error) {
				return builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{service}), m.V3Config())
			}))
		}
	}
	return services, nil
}

// v2 describes the web services of container.
func (m *Models) v2(container *restful.Container) cached.Value[*spec.Swagger] {
	return once(func() (*spec.Swagger, error) {
		config := m.v2Config()
		config.IgnorePrefixes = ignored
		document, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(container.RegisteredWebServices()), config)
		if err != nil {
			return nil, err
		}
		document.Definitions = handler.PruneDefaults(document.Definitions)
		return document, nil
	})
}

// once is a document that is built at most once. What was built does not change,
// so its etag may be any constant; the handlers compute the one that clients see.
func once[T any](build func() (T, error)) cached.Value[T] {
	built := sync.OnceValues(build)
	return cached.Func(func() (T, string, error) {
		document, err := built()
		return document, "built", err
	})
}
