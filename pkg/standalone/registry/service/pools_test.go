// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name   string
		ranges []string
		ports  utilnet.PortRange
		want   string
	}{
		{name: "one range", ranges: []string{range4}},
		{name: "two families", ranges: []string{range6, range4}},
		{name: "smallest IPv4 range", ranges: []string{"10.96.0.0/30"}},
		{name: "smallest IPv6 range", ranges: []string{"fd00::/126"}},
		{name: "largest IPv6 range", ranges: []string{"fd00::/64"}},
		{name: "no range", want: "0 ranges of cluster IPs: must be one, or one of each IP family"},
		{name: "three ranges", ranges: []string{range4, range6, "10.97.0.0/24"}, want: "3 ranges of cluster IPs: must be one, or one of each IP family"},
		{name: "IPv4 twice", ranges: []string{"10.96.0.0/24", "10.97.0.0/24"}, want: "ranges of cluster IPs 10.96.0.0/24 and 10.97.0.0/24: two must be of different IP families"},
		{name: "IPv6 twice", ranges: []string{"fd00::/112", "fd01::/112"}, want: "ranges of cluster IPs fd00::/112 and fd01::/112: two must be of different IP families"},
		{name: "host bits", ranges: []string{"10.96.0.7/24"}, want: "range of cluster IPs 10.96.0.7/24: there are bits set beyond the prefix, it should be 10.96.0.0/24"},
		{name: "IPv6 host bits", ranges: []string{"fd00::1/112"}, want: "range of cluster IPs fd00::1/112: there are bits set beyond the prefix, it should be fd00::/112"},
		{name: "IPv4 range too small", ranges: []string{"10.96.0.0/31"}, want: "range of cluster IPs 10.96.0.0/31: too small, the longest prefix is /30"},
		{name: "IPv6 range too small", ranges: []string{"fd00::/127"}, want: "range of cluster IPs fd00::/127: too small, the longest prefix is /126"},
		{name: "IPv6 range too large", ranges: []string{"fd00::/48"}, want: "range of cluster IPs fd00::/48: too large, the shortest IPv6 prefix is /64"},
		{name: "IPv4 mapped to IPv6", ranges: []string{"::ffff:10.96.0.0/120"}, want: "range of cluster IPs ::ffff:10.96.0.0/120: neither IPv4 nor IPv6, but IPv4 mapped to IPv6"},
		{name: "ports beyond the last", ranges: []string{range4}, ports: utilnet.PortRange{Base: 65535, Size: 2}, want: "node port range 65535-65536: not a range of ports"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{NodePortRange: test.ports}
			for _, text := range test.ranges {
				cfg.ClusterIPRanges = append(cfg.ClusterIPRanges, netip.MustParsePrefix(text))
			}
			_, err := newPools(cfg)
			if got := fmt.Sprint(err); got != test.want && (test.want != "" || err != nil) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// drain takes addresses until there are no more.
func drain(t *testing.T, r *reservation, family corev1.IPFamily) []string {
	t.Helper()
	var got []string
	for {
		address, err := r.nextIP(family)
		if err != nil {
			if !errors.Is(err, errFull) {
				t.Error(err)
			}
			return got
		}
		got = append(got, address.String())
	}
}

func TestEveryUsableAddressIsHandedOutOnce(t *testing.T) {
	p, err := newPools(tinyConfig())
	if err != nil {
		t.Fatal(err)
	}
	p.random = func(uint64) uint64 { return 2 }
	r := p.reserve("a", newHeld(), false)
	want := []string{"10.96.0.3", "10.96.0.4", "10.96.0.5", "10.96.0.6", "10.96.0.1", "10.96.0.2"}
	if diff := cmp.Diff(want, drain(t, r, corev1.IPv4Protocol)); diff != "" {
		t.Errorf("IPv4 (-want +got):\n%s", diff)
	}
	// The last address of an IPv6 range is none for broadcasts.
	want = []string{
		"fd00:10:96::3", "fd00:10:96::4", "fd00:10:96::5", "fd00:10:96::6", "fd00:10:96::7", "fd00:10:96::1", "fd00:10:96::2",
	}
	if diff := cmp.Diff(want, drain(t, r, corev1.IPv6Protocol)); diff != "" {
		t.Errorf("IPv6 (-want +got):\n%s", diff)
	}
	r.revert()
	if len(p.ips) != 0 {
		t.Errorf("after revert: %v", p.ips)
	}
}

func TestAddressesForStaticUseAreHandedOutLast(t *testing.T) {
	p, err := newPools(Config{ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/27")}})
	if err != nil {
		t.Fatal(err)
	}
	got := drain(t, p.reserve("a", newHeld(), false), corev1.IPv4Protocol)
	if len(got) != 30 {
		t.Fatalf("%d addresses", len(got))
	}
	for i, text := range got {
		static := netip.MustParseAddr(text).Less(netip.MustParseAddr("10.96.0.17"))
		if want := i >= 14; static != want {
			t.Errorf("address %d is %s", i, text)
		}
	}
}

func TestLargestRangesDoNotOverflow(t *testing.T) {
	p, err := newPools(Config{ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix("fd00::/64"), netip.MustParsePrefix("0.0.0.0/0")}})
	if err != nil {
		t.Fatal(err)
	}
	p.random = func(n uint64) uint64 { return n - 1 }
	r := p.reserve("a", newHeld(), false)
	for family, want := range map[corev1.IPFamily]string{
		corev1.IPv6Protocol: "fd00::ffff:ffff:ffff:ffff",
		corev1.IPv4Protocol: "255.255.255.254",
	} {
		if got, err := r.nextIP(family); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v", family, got, err)
		}
	}
}

func TestRangeContains(t *testing.T) {
	p, err := newPools(Config{ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix(range4), netip.MustParsePrefix(range6)}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{
		"10.96.0.0":          errIPNotInRange,
		"10.96.0.1":          nil,
		"10.96.0.254":        nil,
		"10.96.0.255":        errIPNotInRange,
		"10.97.0.1":          errIPNotInRange,
		"fd00:10:96::":       errIPNotInRange,
		"fd00:10:96::1":      nil,
		"fd00:10:96::ffff":   nil,
		"fd00:10:96::1:0":    errIPNotInRange,
		"2001:db8::10.9.6.1": errIPNotInRange,
	} {
		if got := p.reserve("a", newHeld(), true).takeIP(netip.MustParseAddr(text)); !errors.Is(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestClaimsBelongToTheirOwner(t *testing.T) {
	l := ledger[int32]{}
	if !l.take(1, "a") || l.take(1, "b") || l.available(1, "b") || !l.available(1, "a") || l.free(1) {
		t.Fatal("a claim is not exclusive")
	}
	l.release(1, "b")
	l.release(2, "a")
	if l.free(1) {
		t.Error("released by another owner")
	}
	l.take(1, "a")
	l.release(1, "a")
	if l.free(1) {
		t.Error("one release ended two claims")
	}
	l.release(1, "a")
	l.release(1, "a")
	if !l.free(1) || len(l) != 0 {
		t.Error("not released")
	}
}

// TestReleaseAfterTheValueWasTakenBack: a write gives a port up, and before it
// releases the port the next write to the same Service takes it back.
func TestReleaseAfterTheValueWasTakenBack(t *testing.T) {
	p, err := newPools(tinyConfig())
	if err != nil {
		t.Fatal(err)
	}
	first := p.reserve("a", newHeld(), false)
	if err := first.takePort(30001); err != nil {
		t.Fatal(err)
	}
	with, without := newHeld(), newHeld()
	with.ports.Insert(30001)
	first.commit(with)

	gives := p.reserve("a", with, false)
	takes := p.reserve("a", without, false)
	if err := takes.takePort(30001); err != nil {
		t.Fatal(err)
	}
	gives.commit(without)
	takes.commit(with)
	if got := p.ports[30001]; got.count != 1 || got.owner != "a" {
		t.Errorf("got %+v", got)
	}
	if err := p.reserve("b", newHeld(), false).takePort(30001); !errors.Is(err, errPortAllocated) {
		t.Errorf("another Service: %v", err)
	}
}

func TestSpanPicksWhatIsFree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		s := span{size: 1 + random.Uint64N(40)}
		s.reserved = random.Uint64N(s.size + 1)
		taken := map[uint64]bool{}
		for offset := range s.size {
			taken[offset] = random.IntN(3) > 0
		}
		freeReserved, freeOther := false, false
		for offset := range s.size {
			if !taken[offset] && offset < s.reserved {
				freeReserved = true
			}
			if !taken[offset] && offset >= s.reserved {
				freeOther = true
			}
		}
		offset, ok := s.pick(random.Uint64N, func(offset uint64) bool { return taken[offset] })
		if ok != (freeReserved || freeOther) {
			t.Fatalf("%+v %v: found %v", s, taken, ok)
		}
		if ok && (taken[offset] || offset >= s.size || offset < s.reserved && freeOther) {
			t.Fatalf("%+v %v: got %d", s, taken, offset)
		}
	}
}
