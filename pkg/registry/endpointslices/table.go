// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"strconv"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get endpointslices".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	doc := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "AddressType", Type: "string", Description: doc["addressType"]},
		{Name: "Ports", Type: "string", Description: doc["ports"]},
		{Name: "Endpoints", Type: "string", Description: doc["endpoints"]},
		table.AgeColumn(),
	}, cells)
}

func cells(slice *discoveryv1.EndpointSlice, now time.Time) []any {
	return []any{
		slice.Name,
		string(slice.AddressType),
		ports(slice.Ports),
		addresses(slice.Endpoints),
		table.Age(slice.CreationTimestamp, now),
	}
}

// ports lists port numbers; a port without a number is shown by its name, and
// one with neither stands for all ports.
func ports(slicePorts []discoveryv1.EndpointPort) string {
	var listing table.Listing
	for i := range slicePorts {
		listing.Add(func() string {
			switch port := &slicePorts[i]; {
			case port.Port != nil:
				return strconv.Itoa(int(*port.Port))
			case port.Name != nil:
				return *port.Name
			default:
				return "*"
			}
		})
	}
	return listing.String(table.Unset)
}

func addresses(endpoints []discoveryv1.Endpoint) string {
	var listing table.Listing
	for i := range endpoints {
		for _, address := range endpoints[i].Addresses {
			listing.Add(func() string { return address })
		}
	}
	return listing.String(table.Unset)
}
