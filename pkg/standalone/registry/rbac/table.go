// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewRoleBindingTable returns the convertor behind "kubectl get rolebindings".
func NewRoleBindingTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, bindingColumns(rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"]),
		func(binding *rbacv1.RoleBinding, now time.Time) []any {
			return bindingCells(&binding.ObjectMeta, &binding.RoleRef, binding.Subjects, now)
		})
}

// NewClusterRoleBindingTable returns the convertor behind "kubectl get
// clusterrolebindings".
func NewClusterRoleBindingTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, bindingColumns(rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"]),
		func(binding *rbacv1.ClusterRoleBinding, now time.Time) []any {
			return bindingCells(&binding.ObjectMeta, &binding.RoleRef, binding.Subjects, now)
		})
}

func bindingColumns(roleRef string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Role", Type: "string", Description: roleRef},
		table.AgeColumn(),
		{Name: "Users", Type: "string", Priority: 1, Description: "The users that are given the role."},
		{Name: "Groups", Type: "string", Priority: 1, Description: "The groups that are given the role."},
		{Name: "ServiceAccounts", Type: "string", Priority: 1, Description: "The service accounts that are given the role."},
	}
}

func bindingCells(meta *metav1.ObjectMeta, role *rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	var users, groups, accounts []string
	for i := range subjects {
		switch subject := &subjects[i]; subject.Kind {
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, subject.Namespace+"/"+subject.Name)
		case rbacv1.UserKind:
			users = append(users, subject.Name)
		case rbacv1.GroupKind:
			groups = append(groups, subject.Name)
		}
	}
	return []any{
		meta.Name, role.Kind + "/" + role.Name, table.Age(meta.CreationTimestamp, now),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
