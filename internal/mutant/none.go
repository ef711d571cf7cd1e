// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(mutant_dropped_event || mutant_reused_revision || mutant_stale_domain || mutant_aliasing_write || mutant_lost_tombstone)

package mutant

const (
	// DroppedEvent means that a watch that reads three changes at once misses the third.
	DroppedEvent = false
	// ReusedRevision means that the changes of one batch share a revision.
	ReusedRevision = false
	// StaleDomain means that what a relist says of a topology domain in force reaches no Service.
	StaleDomain = false
	// AliasingWrite means that the store shares with the caller what it was given to write.
	AliasingWrite = false
	// LostTombstone means that an EndpointSlice that a relist lacks goes without an event.
	LostTombstone = false
)
