// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"net/netip"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
)

// What the flags accept, Services can be allocated from.
func TestRangesOfClusterIPsAreJudgedAsByServices(t *testing.T) {
	for _, text := range []string{"fd00::/64", "fd00::/63", "::ffff:10.0.0.0/120", "fd00::/127", "10.0.0.0/30"} {
		ranges := []netip.Prefix{netip.MustParsePrefix(text)}
		got, want := standalone.ValidateServiceClusterIPRanges(ranges), service.ValidateClusterIPRanges(ranges)
		if (got == nil) != (want == nil) {
			t.Errorf("%s: got %v, Services have %v", text, got, want)
		}
	}
	if standalone.DefaultServiceNodePortRange != service.DefaultNodePortRange {
		t.Errorf("node ports %v, those of Services %v", standalone.DefaultServiceNodePortRange, service.DefaultNodePortRange)
	}
	if err := service.ValidateClusterIPRanges(standalone.DefaultServiceClusterIPRanges); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
