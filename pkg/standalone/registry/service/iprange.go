// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/binary"
	"math"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// ipRange is the cluster IPs of one family: all addresses of a prefix but its
// network address and, for IPv4, its broadcast address.
type ipRange struct {
	prefix netip.Prefix
	span   span
}

// newIPRange makes a range of a prefix that ValidateClusterIPRanges accepts.
func newIPRange(prefix netip.Prefix) *ipRange {
	total := uint64(math.MaxUint64)
	if hostBits := prefix.Addr().BitLen() - prefix.Bits(); hostBits < 64 {
		total = 1 << hostBits
	}
	unusable := uint64(1)
	if prefix.Addr().Is4() {
		unusable = 2
	}
	if total == math.MaxUint64 {
		unusable = 0 // total is one short of 2^64 already
	}
	return &ipRange{prefix: prefix, span: newSpan(total-unusable, total, 16, 256)}
}

func (r *ipRange) family() corev1.IPFamily {
	if r.prefix.Addr().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// at returns the address at an offset of the span.
func (r *ipRange) at(offset uint64) netip.Addr {
	offset++ // the network address
	if r.prefix.Addr().Is4() {
		raw := r.prefix.Addr().As4()
		binary.BigEndian.PutUint32(raw[:], binary.BigEndian.Uint32(raw[:])+uint32(offset))
		return netip.AddrFrom4(raw)
	}
	raw := r.prefix.Addr().As16()
	// A prefix of 64 bits or more: there is no carry into the upper half.
	binary.BigEndian.PutUint64(raw[8:], binary.BigEndian.Uint64(raw[8:])+offset)
	return netip.AddrFrom16(raw)
}

func (r *ipRange) contains(address netip.Addr) bool {
	return r.prefix.Contains(address) && address != r.prefix.Addr() &&
		(address.Is6() || address.Compare(r.at(r.span.size-1)) <= 0)
}

// parseAddress accepts what the API accepts, leading zeros and IPv4-mapped
// IPv6 addresses included.
func parseAddress(text string) (netip.Addr, bool) {
	address, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return address.Unmap(), ok
}

// familyOf returns a family that no cluster has if text is no address.
func familyOf(text string) corev1.IPFamily {
	switch {
	case netutils.IsIPv4String(text):
		return corev1.IPv4Protocol
	case netutils.IsIPv6String(text):
		return corev1.IPv6Protocol
	default:
		return "unknown"
	}
}

func otherFamily(family corev1.IPFamily) corev1.IPFamily {
	if family == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
