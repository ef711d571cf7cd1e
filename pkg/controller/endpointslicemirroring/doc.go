// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslicemirroring copies the Endpoints that people write for
// Services without a selector into EndpointSlices, which is what kube-proxy and
// others read.
//
// The semantics are those of kube-controller-manager's
// endpointslicemirroring-controller: at most 1,000 addresses of a subset are
// copied, and nothing of Endpoints with the label
// endpointslice.kubernetes.io/skip-mirror: "true" or of a leader election.
// Unlike there, a copy keeps the canonical order of addresses, labels that
// belong to the copy are not compared with the Endpoints', and an Event is sent
// once for each revision of the Endpoints.
//
// Plan decides, without I/O. Controller reads informers and writes.
package endpointslicemirroring
