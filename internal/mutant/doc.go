// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutant holds the switches of defects that are planted in the code to
// test its tests: "make test-mutants" builds the tests with one of them at a
// time and fails if no test notices. Every switch is a constant that is false
// unless its build tag is set, so the compiler leaves nothing of them in a
// program.
package mutant
