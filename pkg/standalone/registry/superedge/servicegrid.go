// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package superedge stores ServiceGrids of superedge.io/v1 for the standalone
// server, as an API server does that knows them by their
// CustomResourceDefinition.
package superedge

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/validation"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "servicegrids" and "servicegrids/status".
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*superedgev1.ServiceGrid]{
		Version:      superedgev1.SchemeGroupVersion,
		Kind:         "ServiceGrid",
		Resource:     "servicegrids",
		AnyFinalizer: true,
		Singular:     "servicegrid",
		ShortNames:   []string{"sg"},
		Namespaced:   true,
		New:          func() *superedgev1.ServiceGrid { return &superedgev1.ServiceGrid{} },
		NewList:      func() runtime.Object { return &superedgev1.ServiceGridList{} },
		Table:        NewTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		// As for every custom resource.
		NeedsRevision: true,
		Rules: resource.Rules[*superedgev1.ServiceGrid]{
			Reset: resource.StatusField(),
			PrepareForCreate: func(_ context.Context, grid *superedgev1.ServiceGrid) {
				grid.Generation = 1
				grid.Status = superedgev1.ServiceGridStatus{}
			},
			PrepareForUpdate: func(_ context.Context, grid, old *superedgev1.ServiceGrid) {
				grid.Status = old.Status
				if !apiequality.Semantic.DeepEqual(grid.Spec, old.Spec) {
					grid.Generation = old.Generation + 1
				}
			},
			Validate: func(_ context.Context, grid *superedgev1.ServiceGrid) field.ErrorList {
				return validation.ValidateServiceGrid(grid)
			},
			ValidateUpdate: func(_ context.Context, grid, _ *superedgev1.ServiceGrid) field.ErrorList {
				return validation.ValidateServiceGrid(grid)
			},
		},
		Status: &resource.Rules[*superedgev1.ServiceGrid]{
			Reset: resource.Fields([]string{"metadata"}, []string{"spec"}),
			PrepareForUpdate: func(_ context.Context, grid, old *superedgev1.ServiceGrid) {
				grid.Spec = old.Spec
				metav1.ResetObjectMetaForStatus(&grid.ObjectMeta, &old.ObjectMeta)
			},
		},
	})
}

// NewTable returns the convertor behind "kubectl get servicegrids". Its columns
// are those of the CustomResourceDefinition.
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	age := table.AgeColumn()
	age.Name = "AGE"
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "KEY", Type: "string", Description: "The node label key that makes the node units."},
		{Name: "SERVICE", Type: "string", Description: "The Service that the controller made."},
		{Name: "CLUSTER-IP", Type: "string", Description: "The cluster IP of that Service."},
		age,
	}, func(grid *superedgev1.ServiceGrid, now time.Time) []any {
		return []any{
			grid.Name, grid.Spec.GridUniqKey, grid.Status.ServiceName, grid.Status.ClusterIP,
			table.Age(grid.CreationTimestamp, now),
		}
	})
}
