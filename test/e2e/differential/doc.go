// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package differential makes the same changes in a real cluster (etcd, kube-apiserver, kube-controller-manager) and in
// grid-apiserver --standalone, and compares after each what both answered and what they and their controllers made
// of it: Services, Endpoints, EndpointSlices and Pods, field by field.
//
// What may differ is either normalised (uids, times, revisions, generated names, allocated addresses and ports) or
// listed with its reason in allowed_test.go.
//
// To see whether a difference is one of the test itself, run it with two real clusters:
//
//	go test ./differential -against=kube-apiserver
package differential
