// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutant_aliasing_write

package mutant

const (
	DroppedEvent   = false
	ReusedRevision = false
	StaleDomain    = false
	AliasingWrite  = true
	LostTombstone  = false
)
