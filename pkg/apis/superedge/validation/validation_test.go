// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// TestSchemaAndValidationAcceptTheSameKeys, in artifacts/, has many more keys.
func TestValidateServiceGrid(t *testing.T) {
	invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "gridUniqKey"), "", "")}
	for _, test := range []struct {
		name, key string
		want      field.ErrorList
	}{
		{"a key", "zone1", nil},
		{"a key with a prefix", "topology.kubernetes.io/zone", nil},
		{"no key", "", field.ErrorList{field.Required(field.NewPath("spec", "gridUniqKey"), "")}},
		{"a space", "zone 1", invalid},
		{"two prefixes", "a/b/zone", invalid},
		{"an upper case prefix", "Example.com/zone", invalid},
		{"a long name", strings.Repeat("z", 64), invalid},
		{"every node", "*", invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ValidateServiceGrid(&superedgev1.ServiceGrid{Spec: superedgev1.ServiceGridSpec{GridUniqKey: test.key}})
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(field.Error{}, "BadValue", "Detail", "Origin")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			for _, err := range got {
				if err.Type == field.ErrorTypeInvalid && err.BadValue != test.key {
					t.Errorf("the error is about %q", err.BadValue)
				}
			}
		})
	}
}
