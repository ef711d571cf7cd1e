// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command models-schema prints the generated OpenAPI definitions as a Swagger document, from which hack/update-codegen.sh
// has the schemas of the apply configurations made.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/grid-apiserver/grid-apiserver/pkg/generated/openapi"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + name)
	})
	document := spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "grid-apiserver", Version: "unversioned"}},
		Definitions: spec.Definitions{},
	}}
	for name, definition := range definitions {
		schema := definition.Schema
		// Swagger has no oneOf. Definitions that need it carry another one.
		if v2, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			schema = v2
		}
		document.Definitions[name] = schema
	}
	return json.NewEncoder(os.Stdout).Encode(document)
}
