// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package categorize checks what kube-proxy makes of filtered EndpointSlices, with kube-proxy's own code and the
// golden inputs of pkg/topology. It needs no lab and no rights. It stands in this module because only this one may
// import k8s.io/kubernetes.
package categorize
