// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestDefinitionsReferToEachOtherByModelNames(t *testing.T) {
	referred := map[string]bool{}
	definitions := GetOpenAPIDefinitions(func(name string) spec.Ref {
		referred[name] = true
		return spec.MustCreateRef("#/definitions/" + name)
	})
	for name := range referred {
		if _, ok := definitions[name]; !ok {
			t.Errorf("%s is referred to, and there is no definition of it", name)
		}
	}
	for name, definition := range definitions {
		if strings.Contains(name, "/") {
			t.Errorf("%s is the name of a Go type, not of a model", name)
		}
		for _, dependency := range definition.Dependencies {
			if _, ok := definitions[dependency]; !ok {
				t.Errorf("%s depends on %s, of which there is no definition", name, dependency)
			}
		}
	}
	for _, name := range []string{
		"io.k8s.api.apps.v1.Deployment", "io.k8s.api.autoscaling.v1.Scale", "io.k8s.api.core.v1.Pod", "io.k8s.api.discovery.v1.EndpointSlice",
		"io.k8s.api.events.v1.Event", "io.k8s.api.networking.v1.ServiceCIDR", "io.k8s.api.rbac.v1.ClusterRole", "io.superedge.v1.ServiceGrid",
		"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
		"io.k8s.apimachinery.pkg.version.Info", "io.k8s.apimachinery.pkg.runtime.RawExtension",
	} {
		if _, ok := definitions[name]; !ok {
			t.Errorf("there is no definition of %s", name)
		}
	}
}
