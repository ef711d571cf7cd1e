// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutant_lost_tombstone

package mutant

const (
	DroppedEvent   = false
	ReusedRevision = false
	StaleDomain    = false
	AliasingWrite  = false
	LostTombstone  = true
)
