// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind says how objects of a kind are reached.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// kinds is what a server has.
type kinds struct {
	// known has all kinds in all versions, since references may use any.
	known map[schema.GroupVersionKind]kind
	// followed has one version of each resource that can be collected.
	followed map[schema.GroupVersionResource]schema.GroupVersionKind
}

// newKinds reads discovery. Lists without a valid group and version are left
// out, as are subresources.
func newKinds(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, ignored []schema.GroupResource) kinds {
	k := kinds{known: map[schema.GroupVersionKind]kind{}, followed: map[schema.GroupVersionResource]schema.GroupVersionKind{}}
	candidates := map[schema.GroupResource]map[string]schema.GroupVersionKind{} // by version
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") {
				continue
			}
			gvk := version.WithKind(r.Kind)
			// Two resources of one kind: the one with verbs for single objects counts.
			if _, ok := k.known[gvk]; !ok || slices.Contains(r.Verbs, "get") {
				k.known[gvk] = kind{resource: version.WithResource(r.Name), namespaced: r.Namespaced}
			}
			resource := version.WithResource(r.Name).GroupResource()
			if slices.Contains(ignored, resource) || !hasVerbs(r.Verbs, "delete", "list", "watch") {
				continue
			}
			if candidates[resource] == nil {
				candidates[resource] = map[string]schema.GroupVersionKind{}
			}
			candidates[resource][version.Version] = gvk
		}
	}
	for resource, byVersion := range candidates {
		version := preferred(groups, resource.Group, byVersion)
		k.followed[resource.WithVersion(version)] = byVersion[version]
	}
	return k
}

func hasVerbs(verbs []string, wanted ...string) bool {
	return !slices.ContainsFunc(wanted, func(verb string) bool { return !slices.Contains(verbs, verb) })
}

// preferred picks a version: the one that the group prefers, or else the first
// in the group's order that has the resource.
func preferred(groups []*metav1.APIGroup, name string, byVersion map[string]schema.GroupVersionKind) string {
	for _, group := range groups {
		if group.Name != name {
			continue
		}
		if _, ok := byVersion[group.PreferredVersion.Version]; ok {
			return group.PreferredVersion.Version
		}
		for _, version := range group.Versions {
			if _, ok := byVersion[version.Version]; ok {
				return version.Version
			}
		}
	}
	return slices.Min(slices.Collect(maps.Keys(byVersion)))
}

// keep adds from older kinds what is in versions that could not be discovered.
func (k kinds) keep(old kinds, failed map[schema.GroupVersion]error) {
	for gvk, kind := range old.known {
		if _, ok := failed[gvk.GroupVersion()]; ok {
			k.known[gvk] = kind
		}
	}
	for resource, gvk := range old.followed {
		if _, ok := failed[resource.GroupVersion()]; !ok {
			continue
		}
		// Another version of it may be there; following both would be double.
		if !k.follows(resource.GroupResource()) {
			k.followed[resource] = gvk
		}
	}
}

func (k kinds) follows(resource schema.GroupResource) bool {
	for followed := range k.followed {
		if followed.GroupResource() == resource {
			return true
		}
	}
	return false
}
