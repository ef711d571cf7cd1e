// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi answers what the types look like: to clients, as OpenAPI v2
// and v3, and to server-side apply, as the types that managedFields are computed
// with. Each part is built when it is first asked for, because all of them
// together take longer than the rest of a server's start, and a server of an
// integration test writes a few kinds and serves no document at all.
package openapi

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Models describes the types of a scheme. It may be used concurrently.
type Models struct {
	scheme         *runtime.Scheme
	getDefinitions common.GetOpenAPIDefinitions
	title, version string

	namer func() *openapinamer.DefinitionNamer
	v3    func() *common.OpenAPIV3Config

	converters converters
}

// New returns the models of the external versions of scheme, as getDefinitions
// describes them. It builds nothing yet.
func New(title, version string, scheme *runtime.Scheme, getDefinitions common.GetOpenAPIDefinitions) *Models {
	m := &Models{scheme: scheme, getDefinitions: getDefinitions, title: title, version: version}
	m.namer = sync.OnceValue(func() *openapinamer.DefinitionNamer { return openapinamer.NewDefinitionNamer(external(scheme)) })
	m.v3 = sync.OnceValue(m.newV3)
	return m
}

// external is s without the internal version. The types are registered in both
// under one name, and a definition must list the kinds that clients know.
func external(s *runtime.Scheme) *runtime.Scheme {
	versions := runtime.NewScheme()
	for kind, goType := range s.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		if object, err := s.New(kind); err == nil && goType != nil {
			versions.AddKnownTypeWithName(kind, object)
		}
	}
	return versions
}

// V3Config is the configuration for one build of OpenAPI v3. The builder writes
// into the extensions of the definitions, which what it builds refers to as well,
// so that each build needs its own.
func (m *Models) V3Config() *common.OpenAPIV3Config {
	config := *m.v3()
	config.Definitions = make(map[string]common.OpenAPIDefinition, len(m.v3().Definitions))
	for name, definition := range m.v3().Definitions {
		definition.Schema.Extensions = maps.Clone(definition.Schema.Extensions)
		config.Definitions[name] = definition
	}
	return &config
}

func (m *Models) newV3() *common.OpenAPIV3Config {
	config := genericapiserver.DefaultOpenAPIV3Config(m.getDefinitions, m.namer())
	config.Info = m.info()
	return config
}

// v2Config is the configuration for building OpenAPI v2, whose references look different.
func (m *Models) v2Config() *common.Config {
	config := genericapiserver.DefaultOpenAPIConfig(m.getDefinitions, m.namer())
	config.Info = m.info()
	return config
}

func (m *Models) info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: m.title, Version: m.version}}
}

// ignored paths have no description: they are not of the API.
var ignored = []string{"/healthz", "/livez", "/readyz", "/metrics", "/openapi"}

func describes(root string) bool {
	return !slices.Contains(ignored, root)
}
