// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest puts the objects of manifests into an API server, as
// "kubectl apply --server-side" does, for programs that run where there is no
// kubectl. Unlike kubectl it also applies the status that a manifest has, which
// is how Pods become ready where there is no kubelet.
package manifest
