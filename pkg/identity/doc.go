// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity keeps the certificates of one server in its data directory:
// a serving CA with the serving certificate, a client CA of its own, and the
// kubeconfig that gives the kube-proxy of the same node the local identity.
//
// Files, all of them mode 0600:
//
//	<dir>/pki/serving-ca.pem      CA certificate and key of the serving certificate
//	<dir>/pki/serving.pem         serving certificate and key
//	<dir>/pki/client-ca.pem       CA certificate and key of the local identity
//	<dir>/kube-proxy.kubeconfig   server address, serving CA, client certificate and key
//
// A certificate and its key share one file, so that a power cut can never leave
// the certificate of one pair beside the key of another.
//
// Everything is made at the first start and used again at later ones. A file
// that cannot be parsed is set aside as <name>.damaged and made anew.
package identity
