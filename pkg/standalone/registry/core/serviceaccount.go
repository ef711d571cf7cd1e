// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newServiceAccounts(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.ServiceAccount]{
		Version:      corev1.SchemeGroupVersion,
		Kind:         "ServiceAccount",
		Resource:     "serviceaccounts",
		Singular:     "serviceaccount",
		ShortNames:   []string{"sa"},
		Namespaced:   true,
		New:          func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
		NewList:      func() runtime.Object { return &corev1.ServiceAccountList{} },
		Table:        NewServiceAccountTable(clock.RealClock{}),
		ValidateName: apivalidation.ValidateServiceAccountName,
		Rules: resource.Rules[*corev1.ServiceAccount]{
			PrepareForCreate: func(_ context.Context, account *corev1.ServiceAccount) { keepSecretNames(account) },
			PrepareForUpdate: func(_ context.Context, account, _ *corev1.ServiceAccount) { keepSecretNames(account) },
		},
		Adjust: func(store *genericregistry.Store, _ *generic.StoreOptions) { store.ReturnDeletedObject = true },
	})
}

// keepSecretNames drops the rest of the references: they are all to Secrets of
// the same namespace.
func keepSecretNames(account *corev1.ServiceAccount) {
	for i := range account.Secrets {
		account.Secrets[i] = corev1.ObjectReference{Name: account.Secrets[i].Name}
	}
}

// NewServiceAccountTable returns the convertor behind "kubectl get
// serviceaccounts".
func NewServiceAccountTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{table.NameColumn(), table.AgeColumn()},
		func(account *corev1.ServiceAccount, now time.Time) []any {
			return []any{account.Name, table.Age(account.CreationTimestamp, now)}
		})
}
