// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net/netip"
)

// The first address of the primary range is that of the Service kubernetes, so
// the smallest ranges have one more. The largest one of IPv6 is that of
// kube-apiserver; ipRange counts its addresses in 64 bits.
const (
	maxIPv4Bits = 30
	maxIPv6Bits = 126
	minIPv6Bits = 64
)

// ValidateClusterIPRanges says why Services cannot have their cluster IPs from
// ranges. There must be one, or one of each IP family.
func ValidateClusterIPRanges(ranges []netip.Prefix) error {
	if len(ranges) == 0 || len(ranges) > 2 {
		return fmt.Errorf("%d ranges of cluster IPs: must be one, or one of each IP family", len(ranges))
	}
	for _, r := range ranges {
		if err := validateClusterIPRange(r); err != nil {
			return err
		}
	}
	if len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4() {
		return fmt.Errorf("ranges of cluster IPs %s and %s: two must be of different IP families", ranges[0], ranges[1])
	}
	return nil
}

func validateClusterIPRange(r netip.Prefix) error {
	longest := maxIPv6Bits
	if r.Addr().Is4() {
		longest = maxIPv4Bits
	}
	switch {
	case !r.IsValid():
		return errors.New("an invalid range of cluster IPs")
	case r.Addr().Is4In6():
		return fmt.Errorf("range of cluster IPs %s: neither IPv4 nor IPv6, but IPv4 mapped to IPv6", r)
	case r != r.Masked():
		return fmt.Errorf("range of cluster IPs %s: there are bits set beyond the prefix, it should be %s", r, r.Masked())
	case r.Bits() > longest:
		return fmt.Errorf("range of cluster IPs %s: too small, the longest prefix is /%d", r, longest)
	case r.Addr().Is6() && r.Bits() < minIPv6Bits:
		return fmt.Errorf("range of cluster IPs %s: too large, the shortest IPv6 prefix is /%d", r, minIPv6Bits)
	}
	return nil
}
