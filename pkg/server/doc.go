// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server puts the parts together: the feed from upstream, the view, the
// REST storages, the proxy and who may use them.
//
// A Config becomes a Server in steps that cannot be left out: Complete, New,
// PrepareRun, Run.
package server
