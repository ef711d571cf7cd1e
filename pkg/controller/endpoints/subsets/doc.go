// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subsets brings the subsets of an Endpoints object into the one form
// that all writers of Endpoints agree upon, so that equal contents are equal
// objects. Its functions do not write into their arguments.
package subsets
