// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdbuilder "k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func newOpenAPIV3Config() *common.OpenAPIV3Config {
	config := genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, openapinamer.NewDefinitionNamer(apiserver.Scheme))
	config.Info = newInfo()
	return config
}

func newOpenAPIConfig() *common.Config {
	config := genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, openapinamer.NewDefinitionNamer(apiserver.Scheme))
	config.Info = newInfo()
	return config
}

func newInfo() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes CRD API", Version: apiextensionsv1.SchemeGroupVersion.Version}}
}

// ownDocuments describe the definitions themselves. They are built when they are first asked for.
type ownDocuments struct {
	v2 func() (*spec.Swagger, error)
	v3 map[string]func() (*spec3.OpenAPI, error) // by path, "apis/<group>/<version>"
}

func newOwnDocuments(services []*restful.WebService) ownDocuments {
	services = slices.DeleteFunc(slices.Clone(services), func(service *restful.WebService) bool {
		return !strings.HasPrefix(service.RootPath(), "/apis/")
	})
	own := ownDocuments{v3: map[string]func() (*spec3.OpenAPI, error){}}
	own.v2 = sync.OnceValues(func() (*spec.Swagger, error) {
		document, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), newOpenAPIConfig())
		if err != nil {
			return nil, fmt.Errorf("describing custom resource definitions: %w", err)
		}
		document.Definitions = handler.PruneDefaults(document.Definitions)
		return document, nil
	})
	for _, service := range services {
		own.v3[strings.Trim(service.RootPath(), "/")] = sync.OnceValues(func() (*spec3.OpenAPI, error) {
			return builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{service}), newOpenAPIV3Config())
		})
	}
	return own
}

// description is what one version of one definition adds to the documents. Both
// parts are nil if it cannot be described, which must not spoil the documents.
type description struct {
	// identity tells it apart from that of any other version, and of the version before a change.
	identity string
	v2       func() *spec.Swagger
	v3       func() *spec3.OpenAPI
}

func identityOf(definition *apiextensionsv1.CustomResourceDefinition, version string) string {
	return fmt.Sprintf("%s,%d,%s", definition.UID, definition.Generation, version)
}

func describe(definition *apiextensionsv1.CustomResourceDefinition, version string) *description {
	report := func(err error) bool {
		if err != nil {
			utilruntime.HandleError(fmt.Errorf("describing version %s of %s: %w", version, definition.Name, err))
		}
		return err != nil
	}
	return &description{
		identity: identityOf(definition, version),
		v2: sync.OnceValue(func() *spec.Swagger {
			document, err := crdbuilder.BuildOpenAPIV2(definition, version, crdbuilder.Options{V2: true, IncludeSelectableFields: true})
			if report(err) {
				return nil
			}
			document.Definitions = handler.PruneDefaults(document.Definitions)
			return document
		}),
		v3: sync.OnceValue(func() *spec3.OpenAPI {
			document, err := crdbuilder.BuildOpenAPIV3(definition, version, crdbuilder.Options{IncludeSelectableFields: true})
			if report(err) {
				return nil
			}
			return document
		}),
	}
}

// identities is an etag of what the descriptions are merged into.
func identities(descriptions []*description) string {
	all := make([]string, len(descriptions))
	for i, d := range descriptions {
		all[i] = d.identity
	}
	slices.Sort(all)
	return strings.Join(all, ";")
}

// mergedV3 is the document of one group and version.
func mergedV3(descriptions []*description) cached.Value[*spec3.OpenAPI] {
	merge := sync.OnceValue(func() *spec3.OpenAPI {
		var all []*spec3.OpenAPI
		for _, d := range descriptions {
			if document := d.v3(); document != nil {
				all = append(all, document)
			}
		}
		document, err := crdbuilder.MergeSpecsV3(all...)
		if err != nil {
			// An error would take the list of all documents away.
			utilruntime.HandleError(fmt.Errorf("merging descriptions of custom resources: %w", err))
			return &spec3.OpenAPI{}
		}
		return document
	})
	return cached.Func(func() (*spec3.OpenAPI, string, error) { return merge(), identities(descriptions), nil })
}

// mergedV2 is the one document of static, the definitions and the descriptions.
func mergedV2(static cached.Value[*spec.Swagger], own ownDocuments, descriptions []*description) cached.Value[*spec.Swagger] {
	merge := sync.OnceValues(func() (*spec.Swagger, error) {
		document, _, err := static.Get()
		if err != nil {
			return nil, err
		}
		definitions, err := own.v2()
		if err != nil {
			return nil, err
		}
		all := []*spec.Swagger{definitions}
		for _, d := range descriptions {
			if document := d.v2(); document != nil {
				all = append(all, document)
			}
		}
		return crdbuilder.MergeSpecs(document, all...)
	})
	return cached.Func(func() (*spec.Swagger, string, error) {
		document, err := merge()
		return document, "custom:" + identities(descriptions), err
	})
}
