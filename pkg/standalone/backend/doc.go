// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backend is where the standalone server keeps its objects: one log in
// memory for each resource, in codec mode, and over it the watch cache of
// k8s.io/apiserver.
//
// A log outlives the storage that is built over it, and may have several: a
// custom resource has one for each served version, and they are built anew when
// its definition changes.
package backend
