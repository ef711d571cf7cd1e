// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testserver runs an API server inside a Go test: no etcd, no other
// binary, no child process, no fixed port. It is the server of
// "grid-apiserver --standalone": real discovery, validation, defaulting,
// server-side apply, watches, status subresources, namespaces, garbage
// collection and the controllers that fill Services, and the view of a node in
// front of it. Everything is in memory and gone with the test. Many may run in
// one process at a time.
//
//	func TestController(t *testing.T) {
//		server := testserver.Start(t, testserver.Options{Manifests: []string{"../config/crd"}, CustomResources: true})
//		client, err := kubernetes.NewForConfig(server.Upstream)
//		...
//	}
//
// The server logs to the test. What the libraries log for the whole process goes
// to stderr, unless TestMain calls [DiscardLogs].
//
// What it does otherwise than kube-apiserver is listed in docs/standalone.md. In
// short: no Pod ever runs, and Deployments make no Pods: a test writes the status
// that it needs. As in a cluster, EndpointSlices leave out Pods whose Node does
// not exist.
package testserver
