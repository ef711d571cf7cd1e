// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslice keeps the EndpointSlices of each Service that has a
// selector equal to what its pods are.
//
// What the slices hold is decided by the reconciler of k8s.io/endpointslice,
// the one in kube-controller-manager. This package tells it when, as the
// endpointslice-controller does, but retries sooner, never gives up, and looks
// again at Services with pods on unknown nodes when a node appears.
//
// Like there, a Service that becomes one of type ExternalName, or loses its
// selector, keeps its slices, and the slices of a deleted Service are left to
// the garbage collector. A node's zone is noted when the Service is next synced
// for another reason.
package endpointslice
