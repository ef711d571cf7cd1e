// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints keeps the Endpoints object of each Service that has a
// selector equal to what its pods are.
//
// The semantics are those of kube-controller-manager's endpoint-controller. It
// differs where that one leaves something wrong until a later event:
//   - Endpoints that somebody else changes are corrected at once.
//   - What is over capacity is compared after it has been cut, so it is not
//     written anew at each sync, and no subset is left without addresses, which
//     the API server would refuse.
//   - A pod without a node is an address without nodeName. An empty nodeName is
//     refused, together with all other addresses of the Service.
//   - A Service that fails is tried for ever, with at most a minute between.
//
// Build and Plan decide, without I/O. Controller reads informers and writes.
package endpoints
