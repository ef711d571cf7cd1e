// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What clients get to read when a value cannot be had; the texts are those of
// kube-apiserver.
var (
	errFull          = errors.New("range is full")
	errIPAllocated   = errors.New("provided IP is already allocated")
	errIPNotInRange  = errors.New("the provided network does not match the current range")
	errPortAllocated = errors.New("provided port is already allocated")
)

// reservation is what one attempt to write a Service takes from the pools. It
// ends with either commit or revert. What is taken is out of the pools at once;
// what the old Service holds stays there until the new one is written, since
// the write can fail. A dry run looks at the pools but takes nothing.
//
// A reservation is not safe for concurrent use.
type reservation struct {
	pools  *pools
	owner  types.UID
	dryRun bool
	// before is what the stored Service holds.
	before held
	taken  held
}

func (p *pools) reserve(owner types.UID, before held, dryRun bool) *reservation {
	return &reservation{pools: p, owner: owner, dryRun: dryRun, before: before, taken: newHeld()}
}

// takeIP reserves the address.
func (r *reservation) takeIP(address netip.Addr) error {
	ips := r.pools.ranges[familyOf(address.String())]
	if ips == nil || !ips.contains(address) {
		return errIPNotInRange
	}
	r.pools.mu.Lock()
	defer r.pools.mu.Unlock()
	if r.before.ips.Has(address) || r.taken.ips.Has(address) || !r.pools.ips.available(address, r.owner) {
		return errIPAllocated
	}
	r.keepIPLocked(address)
	return nil
}

// nextIP reserves an address of the family, which the pools must have.
func (r *reservation) nextIP(family corev1.IPFamily) (netip.Addr, error) {
	ips := r.pools.ranges[family]
	r.pools.mu.Lock()
	defer r.pools.mu.Unlock()
	offset, ok := ips.span.pick(r.pools.random, func(offset uint64) bool {
		address := ips.at(offset)
		return r.taken.ips.Has(address) || !r.pools.ips.free(address)
	})
	if !ok {
		return netip.Addr{}, errFull
	}
	address := ips.at(offset)
	r.keepIPLocked(address)
	return address, nil
}

func (r *reservation) keepIPLocked(address netip.Addr) {
	r.taken.ips.Insert(address)
	if !r.dryRun {
		r.pools.ips.take(address, r.owner)
	}
}

// takePort reserves the node port.
func (r *reservation) takePort(port int32) error {
	if !r.pools.nodePorts.Contains(int(port)) {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", r.pools.nodePorts.String())
	}
	r.pools.mu.Lock()
	defer r.pools.mu.Unlock()
	if r.before.ports.Has(port) || r.taken.ports.Has(port) || !r.pools.ports.available(port, r.owner) {
		return errPortAllocated
	}
	r.keepPortLocked(port)
	return nil
}

// nextPort reserves a node port.
func (r *reservation) nextPort() (int32, error) {
	at := func(offset uint64) int32 { return int32(r.pools.nodePorts.Base) + int32(offset) }
	r.pools.mu.Lock()
	defer r.pools.mu.Unlock()
	offset, ok := r.pools.portSpan.pick(r.pools.random, func(offset uint64) bool {
		return r.taken.ports.Has(at(offset)) || !r.pools.ports.free(at(offset))
	})
	if !ok {
		return 0, errFull
	}
	r.keepPortLocked(at(offset))
	return at(offset), nil
}

func (r *reservation) keepPortLocked(port int32) {
	r.taken.ports.Insert(port)
	if !r.dryRun {
		r.pools.ports.take(port, r.owner)
	}
}

// commit keeps what the written Service holds and gives back the rest, of what
// was taken and of what was held before.
func (r *reservation) commit(after held) {
	if r.dryRun {
		return
	}
	r.pools.release(held{
		ips:   r.before.ips.Union(r.taken.ips).Difference(after.ips),
		ports: r.before.ports.Union(r.taken.ports).Difference(after.ports),
	}, r.owner)
}

// revert gives back what was taken.
func (r *reservation) revert() {
	if !r.dryRun {
		r.pools.release(r.taken, r.owner)
	}
}
