// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package service stores Services of core/v1 the way kube-apiserver does: it
// completes them, gives them cluster IPs and node ports, and validates them.
//
// A write goes through these steps, in this order:
//
//	decode       SetDefaults: what follows from the Service alone
//	begin        carry over what the client left out, complete the IP families,
//	             reserve addresses and ports (hooks.go, reservation.go)
//	strategy     drop what the new type has no use for, validate
//	storage      write
//	settle       keep or give back what was reserved, release what is no longer held
//
// Addresses and ports are in the pools of this process. They belong to the UID
// of a Service, so that releasing twice, or late, never takes them from another
// one. The pools are exact: whenever no write is under way, they hold what the
// stored Services hold (heldBy), and nothing else.
package service
