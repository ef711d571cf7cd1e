// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// deletable returns the resources of the lists that can be deleted, sorted.
// Lists without a valid group and version are errors and are left out.
func deletable(lists []*metav1.APIResourceList) ([]resource, error) {
	var resources []resource
	var errs []error
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "delete") || strings.Contains(r.Name, "/") {
				continue
			}
			resources = append(resources, resource{
				GroupVersionResource: version.WithResource(r.Name),
				list:                 slices.Contains(r.Verbs, "list"),
				deleteCollection:     slices.Contains(r.Verbs, "deletecollection"),
			})
		}
	}
	slices.SortFunc(resources, func(a, b resource) int { return strings.Compare(a.String(), b.String()) })
	return resources, utilerrors.NewAggregate(errs)
}

// result is what became of one kind.
type result struct {
	resource   resource
	count      int
	finalizers map[string]int // how many objects of the kind have each
	err        error
}

// findings are the results of one round.
type findings struct {
	resources          []resource // that were discovered
	discovery, parsing error
	content            []error
	other              []error
	remaining          map[schema.GroupVersionResource]int
	finalizers         map[string]int
}

func (f *findings) add(r result) {
	if r.err != nil {
		f.content = append(f.content, r.err)
	}
	if r.count == 0 {
		return
	}
	if f.remaining == nil {
		f.remaining, f.finalizers = map[schema.GroupVersionResource]int{}, map[string]int{}
	}
	f.remaining[r.resource.GroupVersionResource] += r.count
	for finalizer, count := range r.finalizers {
		f.finalizers[finalizer] += count
	}
}

// left reports whether something is left, or may be.
func (f *findings) left() bool { return len(f.remaining) > 0 || len(f.content) > 0 }

// errors returns all that went wrong.
func (f *findings) errors() []error {
	errs := append(slices.Clone(f.content), f.other...)
	if f.discovery != nil {
		errs = append(errs, fmt.Errorf("discovering resources: %w", f.discovery))
	}
	if f.parsing != nil {
		errs = append(errs, fmt.Errorf("parsing group versions: %w", f.parsing))
	}
	return errs
}
