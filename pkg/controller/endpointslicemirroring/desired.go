// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/subsets"
)

// group tells apart the slices of one Endpoints object: a slice has one list of
// ports and one kind of address.
type group struct {
	family discoveryv1.AddressType
	ports  endpointsliceutil.PortMapKey
}

func groupOf(slice *discoveryv1.EndpointSlice) group {
	// The key's function sorts what it is given.
	return group{slice.AddressType, endpointsliceutil.NewPortMapKey(append([]discoveryv1.EndpointPort(nil), slice.Ports...))}
}

// content is what the slice of a group should hold.
type content struct {
	ports     []discoveryv1.EndpointPort
	endpoints []*discoveryv1.Endpoint
	// byIdentity has one endpoint for each address, host name and pod: the last
	// one, if there are several.
	byIdentity endpointsliceutil.EndpointSet
}

// list returns the endpoints, each once, at most max.
func (c *content) list(limit int) []discoveryv1.Endpoint {
	list := make([]discoveryv1.Endpoint, 0, min(len(c.endpoints), limit))
	for _, endpoint := range c.endpoints {
		if len(list) < limit && c.byIdentity.Get(endpoint) == endpoint {
			list = append(list, *endpoint)
		}
	}
	return list
}

// desired is what the slices of an Endpoints object should hold.
type desired struct {
	groups  []group // in canonical order
	content map[group]*content
	invalid int // addresses that are no IP
	surplus int // addresses beyond the limit of their subset
}

// desire computes it. Of each subset at most limit addresses count, ready ones
// first.
func desire(endpoints *corev1.Endpoints, limit int) *desired {
	d := &desired{content: map[group]*content{}}
	for _, subset := range subsets.Repack(endpoints.Subsets) {
		ports := portsOf(subset.Ports)
		key := endpointsliceutil.NewPortMapKey(ports) // sorts them
		left := limit
		for i, address := range append(subset.Addresses[:len(subset.Addresses):len(subset.Addresses)], subset.NotReadyAddresses...) {
			if left == 0 {
				d.surplus++
				continue
			}
			family, endpoint := endpointOf(address, i < len(subset.Addresses))
			if endpoint == nil {
				d.invalid++
				continue
			}
			d.add(group{family, key}, ports, endpoint)
			left--
		}
	}
	return d
}

func (d *desired) add(g group, ports []discoveryv1.EndpointPort, endpoint *discoveryv1.Endpoint) {
	c := d.content[g]
	if c == nil {
		c = &content{ports: ports, byIdentity: endpointsliceutil.EndpointSet{}}
		d.content[g] = c
		d.groups = append(d.groups, g)
	}
	c.endpoints = append(c.endpoints, endpoint)
	c.byIdentity.Insert(endpoint)
}

func endpointOf(address corev1.EndpointAddress, ready bool) (discoveryv1.AddressType, *discoveryv1.Endpoint) {
	// Old addresses may be written in ways that are refused today.
	ip := utilnet.ParseIPSloppy(address.IP)
	if ip == nil {
		return "", nil
	}
	family := discoveryv1.AddressTypeIPv4
	if utilnet.IsIPv6(ip) {
		family = discoveryv1.AddressTypeIPv6
	}
	endpoint := &discoveryv1.Endpoint{
		Addresses:  []string{ip.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef:  address.TargetRef,
		NodeName:   address.NodeName,
	}
	if address.Hostname != "" {
		endpoint.Hostname = &address.Hostname
	}
	return family, endpoint
}

func portsOf(ports []corev1.EndpointPort) []discoveryv1.EndpointPort {
	out := make([]discoveryv1.EndpointPort, 0, len(ports))
	for i := range ports {
		port := ports[i]
		out = append(out, discoveryv1.EndpointPort{
			Name:        &port.Name,
			Port:        &port.Port,
			Protocol:    &port.Protocol,
			AppProtocol: port.AppProtocol,
		})
	}
	return out
}
