// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coordination stores Leases of coordination.k8s.io/v1 for the
// standalone server.
package coordination

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "leases". An update must name the
// resourceVersion it is based on, which is what a leader election relies on.
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*coordinationv1.Lease]{
		Version:        coordinationv1.SchemeGroupVersion,
		Kind:           "Lease",
		Resource:       "leases",
		AnyFinalizer:   true,
		Singular:       "lease",
		Namespaced:     true,
		New:            func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		NewList:        func() runtime.Object { return &coordinationv1.LeaseList{} },
		Table:          NewTable(clock.RealClock{}),
		ValidateName:   apivalidation.NameIsDNSSubdomain,
		CreateOnUpdate: true,
		NeedsRevision:  true,
		Rules: resource.Rules[*coordinationv1.Lease]{
			// Coordinated leader election is off, as in kube-apiserver.
			PrepareForCreate: func(_ context.Context, lease *coordinationv1.Lease) {
				lease.Spec.Strategy, lease.Spec.PreferredHolder = nil, nil
			},
			PrepareForUpdate: func(_ context.Context, lease, _ *coordinationv1.Lease) {
				lease.Spec.Strategy, lease.Spec.PreferredHolder = nil, nil
			},
			Validate: func(_ context.Context, lease *coordinationv1.Lease) field.ErrorList { return validateSpec(&lease.Spec) },
			ValidateUpdate: func(_ context.Context, lease, _ *coordinationv1.Lease) field.ErrorList {
				return validateSpec(&lease.Spec)
			},
		},
	})
}

func validateSpec(spec *coordinationv1.LeaseSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if duration := spec.LeaseDurationSeconds; duration != nil && *duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *duration, "must be greater than 0"))
	}
	if transitions := spec.LeaseTransitions; transitions != nil && *transitions < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *transitions, "must be greater than or equal to 0"))
	}
	return errs
}

// NewTable returns the convertor behind "kubectl get leases".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]},
		table.AgeColumn(),
	}, func(lease *coordinationv1.Lease, now time.Time) []any {
		var holder string
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return []any{lease.Name, holder, table.Age(lease.CreationTimestamp, now)}
	})
}
