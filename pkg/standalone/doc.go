// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone is an API server that keeps everything in memory: the
// upstream of "grid-apiserver --standalone", of the demo and of integration
// tests. It is a genericapiserver with the storage, the validation and the
// controllers that Services, their endpoints and ServiceGrids need, without etcd
// and without kube-controller-manager. What it does otherwise than
// kube-apiserver is listed in docs/standalone.md.
//
// Nothing survives a restart, but for the certificates and the token in the data
// directory, so that kubeconfigs stay good.
package standalone
