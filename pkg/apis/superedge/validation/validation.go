// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation says what is wrong with objects of the API group superedge.io.
package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// ValidateServiceGrid says what is wrong with the spec of a ServiceGrid. The schema of the CustomResourceDefinition in
// artifacts/ accepts the same keys. The template is checked when the controller makes a Service of it.
func ValidateServiceGrid(grid *superedgev1.ServiceGrid) field.ErrorList {
	path := field.NewPath("spec", "gridUniqKey")
	if grid.Spec.GridUniqKey == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return ValidateGridUniqKey(grid.Spec.GridUniqKey, path)
}

// ValidateGridUniqKey says what is wrong with a node label key that is not empty.
func ValidateGridUniqKey(key string, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelName(key, path)
}
