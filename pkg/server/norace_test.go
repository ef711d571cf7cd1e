// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package server_test

const slowdown = 1
