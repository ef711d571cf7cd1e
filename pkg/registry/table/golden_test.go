// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpoints"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/endpointslices"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/nodes"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/servicecidrs"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/services"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time at which all golden tables are printed.
var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestGoldenTables renders testdata/<resource>.yaml and compares all columns
// and cells with testdata/<resource>.golden.
func TestGoldenTables(t *testing.T) {
	tests := []struct {
		resource string
		list     runtime.Object
		newTable func(clock.PassiveClock) rest.TableConvertor
	}{
		{"services", &corev1.ServiceList{}, services.NewTable},
		{"endpoints", &corev1.EndpointsList{}, endpoints.NewTable},
		{"endpointslices", &discoveryv1.EndpointSliceList{}, endpointslices.NewTable},
		{"nodes", &corev1.NodeList{}, nodes.NewTable},
		{"namespaces", &corev1.NamespaceList{}, namespaces.NewTable},
		{"servicecidrs", &networkingv1.ServiceCIDRList{}, servicecidrs.NewTable},
	}
	for _, test := range tests {
		t.Run(test.resource, func(t *testing.T) {
			input, err := os.ReadFile(filepath.Join("testdata", test.resource+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(input, test.list); err != nil {
				t.Fatal(err)
			}
			before := test.list.DeepCopyObject()
			got, err := test.newTable(testclock.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.list, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, test.list); diff != "" {
				t.Errorf("the list was changed (-before +after):\n%s", diff)
			}

			golden := filepath.Join("testdata", test.resource+".golden")
			text := render(t, got)
			if *update {
				if err := os.WriteFile(golden, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

// render prints a table with its column types and priorities, cells quoted.
func render(t *testing.T, table *metav1.Table) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for i, column := range table.ColumnDefinitions {
		if column.Description == "" {
			t.Errorf("column %s has no description", column.Name)
		}
		fmt.Fprintf(w, "%s%s:%s:%s:%d", separator(i), column.Name, column.Type, column.Format, column.Priority)
	}
	fmt.Fprintln(w)
	for _, row := range table.Rows {
		if len(row.Cells) != len(table.ColumnDefinitions) {
			t.Errorf("%d cells for %d columns: %v", len(row.Cells), len(table.ColumnDefinitions), row.Cells)
		}
		for i, cell := range row.Cells {
			fmt.Fprintf(w, "%s%q", separator(i), cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return "\t"
}
