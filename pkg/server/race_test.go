// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package server_test

// slowdown is what the race detector may cost.
const slowdown = 5
