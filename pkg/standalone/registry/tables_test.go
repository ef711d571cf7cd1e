// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/apps"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/coordination"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/core"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/event"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/pod"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/rbac"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/superedge"
)

// now is the time at which all golden tables are printed.
var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestGoldenTables renders testdata/tables/<resource>.yaml and compares all
// columns, cells and conditions with testdata/tables/<resource>.golden.
func TestGoldenTables(t *testing.T) {
	for _, test := range []struct {
		resource string
		list     runtime.Object
		newTable func(clock.PassiveClock) rest.TableConvertor
	}{
		{"pods", &corev1.PodList{}, pod.NewTable},
		{"events", &corev1.EventList{}, event.NewTable},
		{"configmaps", &corev1.ConfigMapList{}, core.NewConfigMapTable},
		{"secrets", &corev1.SecretList{}, core.NewSecretTable},
		{"serviceaccounts", &corev1.ServiceAccountList{}, core.NewServiceAccountTable},
		{"leases", &coordinationv1.LeaseList{}, coordination.NewTable},
		{"servicegrids", &superedgev1.ServiceGridList{}, superedge.NewTable},
		{"deployments", &appsv1.DeploymentList{}, apps.NewDeploymentTable},
		{"replicasets", &appsv1.ReplicaSetList{}, apps.NewReplicaSetTable},
		{"statefulsets", &appsv1.StatefulSetList{}, apps.NewStatefulSetTable},
		{"daemonsets", &appsv1.DaemonSetList{}, apps.NewDaemonSetTable},
		{"controllerrevisions", &appsv1.ControllerRevisionList{}, apps.NewControllerRevisionTable},
		{"rolebindings", &rbacv1.RoleBindingList{}, rbac.NewRoleBindingTable},
		{"clusterrolebindings", &rbacv1.ClusterRoleBindingList{}, rbac.NewClusterRoleBindingTable},
	} {
		t.Run(test.resource, func(t *testing.T) {
			input, err := os.ReadFile(filepath.Join("testdata", "tables", test.resource+".yaml"))
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
			golden := filepath.Join("testdata", "tables", test.resource+".golden")
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
	separator := func(i int) string {
		if i == 0 {
			return ""
		}
		return "\t"
	}
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
			fmt.Fprintf(w, "%s%#v", separator(i), cell)
		}
		for _, condition := range row.Conditions {
			fmt.Fprintf(w, "\t%s=%s %s", condition.Type, condition.Status, condition.Reason)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
