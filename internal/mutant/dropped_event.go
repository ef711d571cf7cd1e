// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build mutant_dropped_event

package mutant

const (
	DroppedEvent   = true
	ReusedRevision = false
	StaleDomain    = false
	AliasingWrite  = false
	LostTombstone  = false
)
