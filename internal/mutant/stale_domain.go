// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutant_stale_domain

package mutant

const (
	DroppedEvent   = false
	ReusedRevision = false
	StaleDomain    = true
	AliasingWrite  = false
	LostTombstone  = false
)
