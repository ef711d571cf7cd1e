// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newControllerRevisions(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*appsv1.ControllerRevision]{
		Version:      appsv1.SchemeGroupVersion,
		Kind:         "ControllerRevision",
		Resource:     "controllerrevisions",
		Singular:     "controllerrevision",
		Namespaced:   true,
		New:          func() *appsv1.ControllerRevision { return &appsv1.ControllerRevision{} },
		NewList:      func() runtime.Object { return &appsv1.ControllerRevisionList{} },
		Table:        NewControllerRevisionTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*appsv1.ControllerRevision]{
			Validate: func(_ context.Context, revision *appsv1.ControllerRevision) field.ErrorList {
				return append(nonnegative(&revision.Revision, field.NewPath("revision")), validateData(revision.Data.Raw)...)
			},
			ValidateUpdate: func(_ context.Context, revision, old *appsv1.ControllerRevision) field.ErrorList {
				errs := nonnegative(&revision.Revision, field.NewPath("revision"))
				return append(errs, apivalidation.ValidateImmutableField(revision.Data, old.Data, field.NewPath("data"))...)
			},
		},
	})
}

func validateData(raw []byte) field.ErrorList {
	path := field.NewPath("data")
	var data any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &data); err != nil {
			return field.ErrorList{field.Invalid(path, "<value omitted>", fmt.Sprintf("error parsing data: %v", err))}
		}
	}
	if data == nil {
		return field.ErrorList{field.Required(path, "data is mandatory")}
	}
	if _, ok := data.(map[string]any); !ok {
		return field.ErrorList{field.Required(path, "data must be a valid JSON object")}
	}
	return nil
}

// NewControllerRevisionTable returns the convertor behind "kubectl get
// controllerrevisions".
func NewControllerRevisionTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Controller", Type: "string", Description: "The controller that the object belongs to."},
		{Name: "Revision", Type: "string", Description: appsv1.ControllerRevision{}.SwaggerDoc()["revision"]},
		table.AgeColumn(),
	}, func(revision *appsv1.ControllerRevision, now time.Time) []any {
		controller := table.None
		if ref := metav1.GetControllerOf(revision); ref != nil {
			kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
			controller = strings.ToLower(kind.String()) + "/" + ref.Name
		}
		return []any{revision.Name, controller, revision.Revision, table.Age(revision.CreationTimestamp, now)}
	})
}
