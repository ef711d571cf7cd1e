// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"maps"
	"slices"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// servedVersions returns the definitions that serve each version, in the order of their names.
func servedVersions(definitions []*apiextensionsv1.CustomResourceDefinition) map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition {
	out := map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition{}
	definitions = slices.SortedFunc(slices.Values(definitions), func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	for _, definition := range definitions {
		if !apiextensionshelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established) {
			continue
		}
		for i := range definition.Spec.Versions {
			if v := &definition.Spec.Versions[i]; v.Served {
				gv := schema.GroupVersion{Group: definition.Spec.Group, Version: v.Name}
				out[gv] = append(out[gv], definition)
			}
		}
	}
	return out
}

// groupsOf returns the groups of versions for discovery: the version that clients
// should prefer first, which is the most stable and then the newest one.
func groupsOf[V any](versions map[schema.GroupVersion]V) map[string]metav1.APIGroup {
	out := map[string]metav1.APIGroup{}
	sorted := slices.SortedFunc(maps.Keys(versions), func(a, b schema.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	for _, gv := range sorted {
		group := out[gv.Group]
		group.Name = gv.Group
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		group.PreferredVersion = group.Versions[0]
		out[gv.Group] = group
	}
	return out
}
