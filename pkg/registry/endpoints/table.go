// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get endpoints".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Endpoints", Type: "string", Description: corev1.Endpoints{}.SwaggerDoc()["subsets"]},
		table.AgeColumn(),
	}, cells)
}

func cells(endpoints *corev1.Endpoints, now time.Time) []any {
	return []any{endpoints.Name, ready(endpoints.Subsets), table.Age(endpoints.CreationTimestamp, now)}
}

// ready lists the ready addresses of all subsets, each with each port, or
// alone in a subset without ports (a headless Service). Subsets with no ready
// address give an empty cell, which tells them from no subsets at all.
func ready(subsets []corev1.EndpointSubset) string {
	if len(subsets) == 0 {
		return table.None
	}
	var listing table.Listing
	for i := range subsets {
		addresses := subsets[i].Addresses
		if len(subsets[i].Ports) == 0 {
			for j := range addresses {
				listing.Add(func() string { return addresses[j].IP })
			}
		}
		for _, port := range subsets[i].Ports {
			for j := range addresses {
				listing.Add(func() string { return net.JoinHostPort(addresses[j].IP, strconv.Itoa(int(port.Port))) })
			}
		}
	}
	return listing.String("")
}
