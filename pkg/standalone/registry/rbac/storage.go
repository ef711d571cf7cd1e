// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac stores the kinds of rbac.authorization.k8s.io/v1 for the
// standalone server. They are storage only: nothing is authorised by them, and
// nobody is kept from granting more than they have.
package rbac

import (
	"context"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "roles", "rolebindings", "clusterroles" and
// "clusterrolebindings".
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	all := map[string]rest.Storage{}
	for _, add := range []func(generic.RESTOptionsGetter) (map[string]rest.Storage, error){
		newRoles, newClusterRoles, newRoleBindings, newClusterRoleBindings,
	} {
		storage, err := add(getter)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, storage)
	}
	return all, nil
}

// validateName lets a name be anything that fits into a URL: "system:admin".
func validateName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// plainTable has the name and the time of creation, as kube-apiserver shows
// roles.
func plainTable(name string) rest.TableConvertor {
	return rest.NewDefaultTableConvertor(schema.GroupResource{Group: rbacv1.GroupName, Resource: name})
}

func newRoles(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*rbacv1.Role]{
		Version:        rbacv1.SchemeGroupVersion,
		Kind:           "Role",
		Resource:       "roles",
		Singular:       "role",
		Namespaced:     true,
		New:            func() *rbacv1.Role { return &rbacv1.Role{} },
		NewList:        func() runtime.Object { return &rbacv1.RoleList{} },
		Table:          plainTable("roles"),
		ValidateName:   validateName,
		CreateOnUpdate: true,
		Rules: resource.Rules[*rbacv1.Role]{
			Validate:       func(_ context.Context, role *rbacv1.Role) field.ErrorList { return validateRules(role.Rules, true) },
			ValidateUpdate: func(_ context.Context, role, _ *rbacv1.Role) field.ErrorList { return validateRules(role.Rules, true) },
		},
	})
}

func newClusterRoles(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*rbacv1.ClusterRole]{
		Version:        rbacv1.SchemeGroupVersion,
		Kind:           "ClusterRole",
		Resource:       "clusterroles",
		Singular:       "clusterrole",
		New:            func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
		NewList:        func() runtime.Object { return &rbacv1.ClusterRoleList{} },
		Table:          plainTable("clusterroles"),
		ValidateName:   validateName,
		CreateOnUpdate: true,
		Rules: resource.Rules[*rbacv1.ClusterRole]{
			Validate: func(_ context.Context, role *rbacv1.ClusterRole) field.ErrorList { return validateClusterRole(role) },
			ValidateUpdate: func(_ context.Context, role, _ *rbacv1.ClusterRole) field.ErrorList {
				return validateClusterRole(role)
			},
		},
	})
}

func newRoleBindings(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*rbacv1.RoleBinding]{
		Version:        rbacv1.SchemeGroupVersion,
		Kind:           "RoleBinding",
		Resource:       "rolebindings",
		Singular:       "rolebinding",
		Namespaced:     true,
		New:            func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
		NewList:        func() runtime.Object { return &rbacv1.RoleBindingList{} },
		Table:          NewRoleBindingTable(clock.RealClock{}),
		ValidateName:   validateName,
		CreateOnUpdate: true,
		Rules: resource.Rules[*rbacv1.RoleBinding]{
			Validate: func(_ context.Context, binding *rbacv1.RoleBinding) field.ErrorList {
				return validateBinding(&binding.RoleRef, binding.Subjects, true)
			},
			ValidateUpdate: func(_ context.Context, binding, old *rbacv1.RoleBinding) field.ErrorList {
				errs := validateBinding(&binding.RoleRef, binding.Subjects, true)
				return append(errs, validateRoleRefUpdate(&binding.RoleRef, &old.RoleRef)...)
			},
		},
	})
}

func newClusterRoleBindings(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*rbacv1.ClusterRoleBinding]{
		Version:        rbacv1.SchemeGroupVersion,
		Kind:           "ClusterRoleBinding",
		Resource:       "clusterrolebindings",
		Singular:       "clusterrolebinding",
		New:            func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
		NewList:        func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
		Table:          NewClusterRoleBindingTable(clock.RealClock{}),
		ValidateName:   validateName,
		CreateOnUpdate: true,
		Rules: resource.Rules[*rbacv1.ClusterRoleBinding]{
			Validate: func(_ context.Context, binding *rbacv1.ClusterRoleBinding) field.ErrorList {
				return validateBinding(&binding.RoleRef, binding.Subjects, false)
			},
			ValidateUpdate: func(_ context.Context, binding, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				errs := validateBinding(&binding.RoleRef, binding.Subjects, false)
				return append(errs, validateRoleRefUpdate(&binding.RoleRef, &old.RoleRef)...)
			},
		},
	})
}
