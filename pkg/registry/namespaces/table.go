// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get namespaces".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Status", Type: "string", Description: "The status of the namespace"},
		table.AgeColumn(),
	}, cells)
}

func cells(namespace *corev1.Namespace, now time.Time) []any {
	return []any{namespace.Name, string(namespace.Status.Phase), table.Age(namespace.CreationTimestamp, now)}
}
