// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd serves CustomResourceDefinitions and what they define: the server
// of k8s.io/apiextensions-apiserver over the logs of a backend. It stands behind
// another server, the front, as a delegate, and publishes there what it serves.
package crd
