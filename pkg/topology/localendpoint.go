// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

const (
	// LocalEndpointAnnotation of the Endpoints object default/kubernetes holds
	// the IP address that replaces those of the object in the view.
	LocalEndpointAnnotation = "superedge.io/local-endpoint"
	// LocalPortAnnotation holds the port that belongs to LocalEndpointAnnotation.
	LocalPortAnnotation = "superedge.io/local-port"

	// localPortName is the name of the only port of the Service
	// default/kubernetes; endpoints are found by the name of the port.
	localPortName = "https"
)

// LocalEndpoint is the one address that takes the place of all addresses of the
// Service default/kubernetes, so that pods reach the API through this node. The
// methods accept a nil LocalEndpoint and then change nothing. It is immutable.
type LocalEndpoint struct {
	// Address is a unicast address without a zone; loopback and link-local
	// addresses are allowed, as local API endpoints usually have one.
	Address netip.Addr
	// Port is a TCP port, 1 to 65535.
	Port int32
}

// ParseLocalEndpoint reads the annotations of the Endpoints object
// default/kubernetes. It returns nil and no error if it has neither annotation.
// One without the other, a value that is no usable IP address, or a port outside
// 1 to 65535 is an error that names the annotation.
func ParseLocalEndpoint(annotations map[string]string) (*LocalEndpoint, error) {
	address, hasAddress := annotations[LocalEndpointAnnotation]
	port, hasPort := annotations[LocalPortAnnotation]
	switch {
	case !hasAddress && !hasPort:
		return nil, nil
	case !hasPort:
		return nil, fmt.Errorf("annotation %s: missing beside %s", LocalPortAnnotation, LocalEndpointAnnotation)
	case !hasAddress:
		return nil, fmt.Errorf("annotation %s: missing beside %s", LocalEndpointAnnotation, LocalPortAnnotation)
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		// The error of netip repeats the whole value.
		return nil, fmt.Errorf("annotation %s: %s is not an IP address", LocalEndpointAnnotation, quote(address))
	}
	if err := checkAddress(addr); err != nil {
		return nil, fmt.Errorf("annotation %s: %s is %w", LocalEndpointAnnotation, quote(address), err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, fmt.Errorf("annotation %s: %s is not a port number, 1 to 65535", LocalPortAnnotation, quote(port))
	}
	return &LocalEndpoint{Address: addr, Port: int32(number)}, nil
}

// ParseHostPort reads IP:PORT, with an IPv6 address in brackets. It never
// returns nil without an error.
func ParseHostPort(value string) (*LocalEndpoint, error) {
	both, err := netip.ParseAddrPort(value)
	if err != nil {
		return nil, fmt.Errorf("%s is not of the form IP:PORT", quote(value))
	}
	if err := checkAddress(both.Addr()); err != nil {
		return nil, fmt.Errorf("the address of %s is %w", quote(value), err)
	}
	if both.Port() == 0 {
		return nil, fmt.Errorf("the port of %s is not in 1 to 65535", quote(value))
	}
	return &LocalEndpoint{Address: both.Addr(), Port: int32(both.Port())}, nil
}

// checkAddress refuses what parses but cannot be an endpoint of a Service.
func checkAddress(addr netip.Addr) error {
	switch {
	case addr.Zone() != "":
		return errors.New("an address with a zone")
	case addr.Is4In6():
		// Clients disagree on the family of these.
		return errors.New("an IPv4-mapped IPv6 address")
	case addr.IsUnspecified():
		return errors.New("the unspecified address")
	case addr.IsMulticast():
		return errors.New("a multicast address")
	}
	return nil
}

// AddressType returns the type of the slices that can carry the address, or the
// empty string for a nil LocalEndpoint.
func (l *LocalEndpoint) AddressType() discoveryv1.AddressType {
	switch {
	case l == nil:
		return ""
	case l.Address.Is4():
		return discoveryv1.AddressTypeIPv4
	default:
		return discoveryv1.AddressTypeIPv6
	}
}

// Slice returns a slice of default/kubernetes with its endpoints replaced. first
// says that this slice is the one, first by name of AddressType, that carries the
// address and the port; every other one is left with no endpoints. The result is
// a shallow copy, or in itself if there is nothing to remove; in is never changed.
func (l *LocalEndpoint) Slice(in *discoveryv1.EndpointSlice, first bool) *discoveryv1.EndpointSlice {
	if l == nil {
		return in
	}
	if !first || in.AddressType != l.AddressType() {
		if len(in.Endpoints) == 0 {
			return in
		}
		out := *in
		out.Endpoints = []discoveryv1.Endpoint{}
		return &out
	}
	ready, name, protocol, port := true, localPortName, corev1.ProtocolTCP, l.Port
	out := *in
	out.Endpoints = []discoveryv1.Endpoint{{
		Addresses:  []string{l.Address.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	}}
	out.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	return &out
}

// Endpoints returns the Endpoints object default/kubernetes with its subsets
// replaced by the address and the port. The result is a shallow copy, or in
// itself for a nil LocalEndpoint; in is never changed.
func (l *LocalEndpoint) Endpoints(in *corev1.Endpoints) *corev1.Endpoints {
	if l == nil {
		return in
	}
	out := *in
	out.Subsets = []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: l.Address.String()}},
		Ports:     []corev1.EndpointPort{{Name: localPortName, Port: l.Port, Protocol: corev1.ProtocolTCP}},
	}}
	return &out
}
