// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{})

func TestParseLocalEndpoint(t *testing.T) {
	both := func(address, port string) map[string]string {
		return map[string]string{LocalEndpointAnnotation: address, LocalPortAnnotation: port}
	}
	tests := []struct {
		name        string
		annotations map[string]string
		want        *LocalEndpoint
		wantErr     string // a part of the message
	}{
		{name: "no annotations"},
		{name: "other annotations", annotations: map[string]string{"superedge.io/local": "x"}},
		{name: "IPv4", annotations: both("10.0.0.1", "6443"), want: &LocalEndpoint{netip.MustParseAddr("10.0.0.1"), 6443}},
		{name: "IPv6", annotations: both("fd00::1", "1"), want: &LocalEndpoint{netip.MustParseAddr("fd00::1"), 1}},
		{name: "loopback", annotations: both("127.0.0.1", "65535"), want: &LocalEndpoint{netip.MustParseAddr("127.0.0.1"), 65535}},
		{name: "link-local", annotations: both("169.254.20.11", "51006"), want: &LocalEndpoint{netip.MustParseAddr("169.254.20.11"), 51006}},
		{name: "address alone", annotations: map[string]string{LocalEndpointAnnotation: "10.0.0.1"}, wantErr: LocalPortAnnotation},
		{name: "port alone", annotations: map[string]string{LocalPortAnnotation: "6443"}, wantErr: LocalEndpointAnnotation},
		{name: "empty address", annotations: both("", "6443"), wantErr: LocalEndpointAnnotation},
		{name: "empty port", annotations: both("10.0.0.1", ""), wantErr: LocalPortAnnotation},
		{name: "both empty", annotations: both("", ""), wantErr: LocalEndpointAnnotation},
		{name: "host name", annotations: both("localhost", "6443"), wantErr: "localhost"},
		{name: "address with port", annotations: both("10.0.0.1:6443", "6443"), wantErr: "10.0.0.1:6443"},
		{name: "space", annotations: both(" 10.0.0.1", "6443"), wantErr: "not an IP address"},
		{name: "leading zero", annotations: both("10.0.0.01", "6443"), wantErr: "not an IP address"},
		{name: "zone", annotations: both("fe80::1%eth0", "6443"), wantErr: "zone"},
		{name: "IPv4-mapped", annotations: both("::ffff:10.0.0.1", "6443"), wantErr: "IPv4-mapped"},
		{name: "unspecified", annotations: both("0.0.0.0", "6443"), wantErr: "unspecified"},
		{name: "unspecified IPv6", annotations: both("::", "6443"), wantErr: "unspecified"},
		{name: "multicast", annotations: both("224.0.0.1", "6443"), wantErr: "multicast"},
		{name: "port zero", annotations: both("10.0.0.1", "0"), wantErr: LocalPortAnnotation},
		{name: "port too large", annotations: both("10.0.0.1", "65536"), wantErr: "65536"},
		{name: "port that would wrap", annotations: both("10.0.0.1", "4294973739"), wantErr: LocalPortAnnotation},
		{name: "negative port", annotations: both("10.0.0.1", "-1"), wantErr: LocalPortAnnotation},
		{name: "port name", annotations: both("10.0.0.1", "https"), wantErr: "https"},
		{name: "200 KB address", annotations: both(strings.Repeat("1", 200<<10), "6443"), wantErr: LocalEndpointAnnotation},
		{name: "200 KB port", annotations: both("10.0.0.1", strings.Repeat("1", 200<<10)), wantErr: LocalPortAnnotation},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseLocalEndpoint(tc.annotations)
			checkError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got, compareAddrs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseHostPort(t *testing.T) {
	tests := []struct {
		value   string
		want    *LocalEndpoint
		wantErr string // a part of the message
	}{
		{value: "10.0.0.1:6443", want: &LocalEndpoint{netip.MustParseAddr("10.0.0.1"), 6443}},
		{value: "[fd00::1]:65535", want: &LocalEndpoint{netip.MustParseAddr("fd00::1"), 65535}},
		{value: "", wantErr: "IP:PORT"},
		{value: "10.0.0.1", wantErr: "IP:PORT"},
		{value: ":6443", wantErr: "IP:PORT"},
		{value: "fd00::1:6443", wantErr: "IP:PORT"},
		{value: "localhost:6443", wantErr: "localhost"},
		{value: "10.0.0.1:https", wantErr: "IP:PORT"},
		{value: "10.0.0.1:65536", wantErr: "IP:PORT"},
		{value: "10.0.0.1:0", wantErr: "1 to 65535"},
		{value: "0.0.0.0:6443", wantErr: "unspecified"},
		{value: "[fe80::1%eth0]:6443", wantErr: "zone"},
		{value: "[::ffff:10.0.0.1]:6443", wantErr: "IPv4-mapped"},
		{value: "[ff02::1]:6443", wantErr: "multicast"},
	}
	for _, tc := range tests {
		t.Run(tc.value, func(t *testing.T) {
			got, err := ParseHostPort(tc.value)
			checkError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got, compareAddrs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case (err != nil) != (want != ""):
		t.Fatalf("error %v, want one: %t", err, want != "")
	case err == nil:
	case !strings.Contains(err.Error(), want):
		t.Errorf("error %q does not mention %q", err, want)
	case len(err.Error()) > maxErrorLen:
		t.Errorf("error of %d bytes, at most %d wanted", len(err.Error()), maxErrorLen)
	}
}

func TestLocalEndpointReplacesSlice(t *testing.T) {
	upstream := func(addressType discoveryv1.AddressType) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			AddressType: addressType,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}, {Addresses: []string{"192.0.2.2"}}},
			Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(6443)), Protocol: new(corev1.ProtocolTCP)}, {Name: new("extra")}},
		}
	}
	with := func(slice *discoveryv1.EndpointSlice, address string) *discoveryv1.EndpointSlice {
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
		slice.Ports = []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(51006)), Protocol: new(corev1.ProtocolTCP)}}
		return slice
	}
	without := func(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		slice.Endpoints = []discoveryv1.Endpoint{}
		return slice
	}
	v4 := &LocalEndpoint{netip.MustParseAddr("169.254.20.11"), 51006}
	v6 := &LocalEndpoint{netip.MustParseAddr("fd00::1"), 51006}
	const ipv4, ipv6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	tests := []struct {
		name  string
		local *LocalEndpoint
		in    *discoveryv1.EndpointSlice
		first bool
		want  *discoveryv1.EndpointSlice
	}{
		{"no local endpoint", nil, upstream(ipv4), true, upstream(ipv4)},
		{"first IPv4", v4, upstream(ipv4), true, with(upstream(ipv4), "169.254.20.11")},
		{"first IPv6", v6, upstream(ipv6), true, with(upstream(ipv6), "fd00::1")},
		{"second", v4, upstream(ipv4), false, without(upstream(ipv4))},
		{"other family", v6, upstream(ipv4), false, without(upstream(ipv4))},
		{"first of a family that cannot carry it", v6, upstream(ipv4), true, without(upstream(ipv4))},
		{"second, null endpoints", v4, &discoveryv1.EndpointSlice{AddressType: ipv4}, false, &discoveryv1.EndpointSlice{AddressType: ipv4}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.in.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.local.Slice(tc.in, tc.first)); diff != "" {
				t.Errorf("slice (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.in); diff != "" {
				t.Errorf("the input was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestLocalEndpointReplacesEndpoints(t *testing.T) {
	in := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Annotations: map[string]string{LocalEndpointAnnotation: "fd00::1"}},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}, {IP: "192.0.2.2"}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: 6443, Protocol: corev1.ProtocolTCP}},
		}},
	}
	before := in.DeepCopy()
	want := in.DeepCopy()
	want.Subsets = []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "fd00::1"}},
		Ports:     []corev1.EndpointPort{{Name: "https", Port: 51006, Protocol: corev1.ProtocolTCP}},
	}}
	local := &LocalEndpoint{netip.MustParseAddr("fd00::1"), 51006}
	if diff := cmp.Diff(want, local.Endpoints(in)); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, in); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}
	if got := (*LocalEndpoint)(nil).Endpoints(in); got != in {
		t.Errorf("without a local endpoint: %v", got)
	}
}

func TestLocalEndpointAddressType(t *testing.T) {
	for address, want := range map[string]discoveryv1.AddressType{
		"10.0.0.1": discoveryv1.AddressTypeIPv4,
		"fd00::1":  discoveryv1.AddressTypeIPv6,
	} {
		if got := (&LocalEndpoint{netip.MustParseAddr(address), 1}).AddressType(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := (*LocalEndpoint)(nil).AddressType(); got != "" {
		t.Errorf("nil: %s", got)
	}
}
