// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// Limits of kube-apiserver, so that what works here works there.
const (
	maxEndpoints      = 1000
	maxAddresses      = 100
	maxPorts          = 20000
	maxTopologyLabels = 16
	maxHints          = 8
)

// validateSlice is for creations, where old is nil, and updates.
func validateSlice(slice, old *discoveryv1.EndpointSlice) field.ErrorList {
	errs := resource.OneOf(field.NewPath("addressType"), slice.AddressType,
		discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	errs = append(errs, validatePorts(slice.Ports, field.NewPath("ports"))...)
	// What was stored before a rule came must not block other changes.
	if old != nil && apiequality.Semantic.DeepEqual(slice.Endpoints, old.Endpoints) {
		return errs
	}
	return append(errs, validateEndpoints(slice, field.NewPath("endpoints"))...)
}

func validatePorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	if len(ports) > maxPorts {
		return field.ErrorList{field.TooMany(path, len(ports), maxPorts)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range ports {
		port, item := &ports[i], path.Index(i)
		var name string
		if port.Name != nil {
			name = *port.Name
		}
		if name != "" {
			errs = append(errs, resource.DNSLabel(item.Child("name"), name)...)
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(item.Child("name"), name))
		}
		seen[name] = true
		var protocol corev1.Protocol
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		errs = append(errs, resource.Protocol(item.Child("protocol"), protocol)...)
		if port.AppProtocol != nil {
			errs = append(errs, resource.QualifiedName(item.Child("appProtocol"), *port.AppProtocol)...)
		}
	}
	return errs
}

func validateEndpoints(slice *discoveryv1.EndpointSlice, path *field.Path) field.ErrorList {
	if len(slice.Endpoints) > maxEndpoints {
		return field.ErrorList{field.TooMany(path, len(slice.Endpoints), maxEndpoints)}
	}
	var errs field.ErrorList
	for i := range slice.Endpoints {
		endpoint, item := &slice.Endpoints[i], path.Index(i)
		addresses := item.Child("addresses")
		switch n := len(endpoint.Addresses); {
		case n == 0:
			errs = append(errs, field.Required(addresses, ""))
		case n > maxAddresses:
			errs = append(errs, field.TooMany(addresses, n, maxAddresses))
		}
		for j, address := range endpoint.Addresses {
			errs = append(errs, validateAddress(slice.AddressType, address, addresses, j)...)
		}
		if endpoint.NodeName != nil {
			errs = append(errs, resource.NodeName(item.Child("nodeName"), *endpoint.NodeName)...)
		}
		topology := item.Child("deprecatedTopology")
		if n := len(endpoint.DeprecatedTopology); n > maxTopologyLabels {
			errs = append(errs, field.TooMany(topology, n, maxTopologyLabels))
		}
		errs = append(errs, metav1validation.ValidateLabels(endpoint.DeprecatedTopology, topology)...)
		if endpoint.Hostname != nil {
			errs = append(errs, resource.DNSLabel(item.Child("hostname"), *endpoint.Hostname)...)
		}
		if endpoint.Hints != nil {
			errs = append(errs, validateHints(endpoint.Hints, item.Child("hints"))...)
		}
	}
	return errs
}

// validateAddress checks one address. The error about the wrong family has the
// path of the list, as in the answers of kube-apiserver.
func validateAddress(addressType discoveryv1.AddressType, address string, list *field.Path, index int) field.ErrorList {
	path := list.Index(index)
	switch addressType {
	case discoveryv1.AddressTypeIPv4:
		if errs := resource.IP(path, address); len(errs) > 0 {
			return errs
		}
		if !utilnet.IsIPv4String(address) {
			return append(field.ErrorList{field.Invalid(list, address, "must be an IPv4 address")}, resource.EndpointIP(path, address)...)
		}
		return resource.EndpointIP(path, address)
	case discoveryv1.AddressTypeIPv6:
		if errs := validation.IsValidIP(path, address); len(errs) > 0 {
			return errs
		}
		if !utilnet.IsIPv6String(address) {
			return append(field.ErrorList{field.Invalid(list, address, "must be an IPv6 address")}, resource.EndpointIP(path, address)...)
		}
		return resource.EndpointIP(path, address)
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(path, address)
	}
	return nil
}

func validateHints(hints *discoveryv1.EndpointHints, path *field.Path) field.ErrorList {
	zones := path.Child("forZones")
	if n := len(hints.ForZones); n > maxHints {
		return field.ErrorList{field.TooMany(zones, n, maxHints)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, zone := range hints.ForZones {
		name := zones.Index(i).Child("name")
		if seen[zone.Name] {
			errs = append(errs, field.Duplicate(name, zone.Name))
		}
		seen[zone.Name] = true
		errs = append(errs, resource.Invalid(name, zone.Name, validation.IsValidLabelValue(zone.Name))...)
	}
	nodes := path.Child("forNodes")
	if n := len(hints.ForNodes); n > maxHints {
		return append(errs, field.TooMany(nodes, n, maxHints))
	}
	seen = map[string]bool{}
	for i, node := range hints.ForNodes {
		name := nodes.Index(i).Child("name")
		if seen[node.Name] {
			errs = append(errs, field.Duplicate(name, node.Name))
		}
		seen[node.Name] = true
		errs = append(errs, resource.NodeName(name, node.Name)...)
	}
	return errs
}
