// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// DefaultNodePortRange is where node ports come from if nothing else is
// configured, as in kube-apiserver.
var DefaultNodePortRange = utilnet.PortRange{Base: 30000, Size: 2768}

// Config says what Services can be given.
type Config struct {
	// ClusterIPRanges are as ValidateClusterIPRanges wants them. The first one
	// is of the family that a Service gets which does not ask for another.
	ClusterIPRanges []netip.Prefix
	// NodePortRange is where node ports come from. The zero value stands for
	// DefaultNodePortRange.
	NodePortRange utilnet.PortRange
}

// pools hold the cluster IPs and node ports of a cluster. They are safe for
// concurrent use.
type pools struct {
	ranges    map[corev1.IPFamily]*ipRange
	primary   corev1.IPFamily
	nodePorts utilnet.PortRange
	portSpan  span
	// random returns a number below n. It is called with the lock held.
	random func(n uint64) uint64

	mu    sync.Mutex
	ips   ledger[netip.Addr]
	ports ledger[int32]
}

func newPools(cfg Config) (*pools, error) {
	p := &pools{
		ranges:    map[corev1.IPFamily]*ipRange{},
		nodePorts: cfg.NodePortRange,
		random:    rand.Uint64N,
		ips:       ledger[netip.Addr]{},
		ports:     ledger[int32]{},
	}
	if err := ValidateClusterIPRanges(cfg.ClusterIPRanges); err != nil {
		return nil, err
	}
	for i, prefix := range cfg.ClusterIPRanges {
		r := newIPRange(prefix)
		p.ranges[r.family()] = r
		if i == 0 {
			p.primary = r.family()
		}
	}
	if p.nodePorts == (utilnet.PortRange{}) {
		p.nodePorts = DefaultNodePortRange
	}
	if base, size := p.nodePorts.Base, p.nodePorts.Size; base < 1 || size < 1 || base+size > 65536 {
		return nil, fmt.Errorf("node port range %s: not a range of ports", p.nodePorts.String())
	}
	size := uint64(p.nodePorts.Size)
	p.portSpan = newSpan(size, size, 32, 128)
	return p, nil
}

// isDualStack tells whether there are addresses of both families.
func (p *pools) isDualStack() bool {
	return len(p.ranges) == 2
}

// has tells whether there are addresses of the family.
func (p *pools) has(family corev1.IPFamily) bool {
	_, ok := p.ranges[family]
	return ok
}

// release gives back whatever of h the owner has.
func (p *pools) release(h held, owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address := range h.ips {
		p.ips.release(address, owner)
	}
	for port := range h.ports {
		p.ports.release(port, owner)
	}
}
