// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidrs

import (
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get servicecidrs".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "CIDRs", Type: "string", Description: networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]},
		table.AgeColumn(),
	}, cells)
}

func cells(cidr *networkingv1.ServiceCIDR, now time.Time) []any {
	return []any{cidr.Name, strings.Join(cidr.Spec.CIDRs, ","), table.Age(cidr.CreationTimestamp, now)}
}
