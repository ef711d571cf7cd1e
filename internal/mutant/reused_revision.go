// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutant_reused_revision

package mutant

const (
	DroppedEvent   = false
	ReusedRevision = true
	StaleDomain    = false
	AliasingWrite  = false
	LostTombstone  = false
)
