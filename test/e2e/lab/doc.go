// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab runs a small cluster of real components on one machine: etcd and kube-apiserver on the host
// "cloud", and on each of the hosts "node0", "node1" and "node2" an echo server, a grid-apiserver and a
// kube-proxy. A host is a network namespace; a bridge in a namespace of its own connects them.
//
//	cloud  10.97.0.2    etcd, kube-apiserver, optionally kube-controller-manager
//	node0  10.97.0.10   echo server, grid-apiserver on 127.0.0.1:51006, kube-proxy
//	node1  10.97.0.11   the same
//	node2  10.97.0.12   the same
//
// Everything needs root, because of the namespaces and of kube-proxy's rules, and nothing is visible outside
// the namespaces. Their names carry the process that made them, so what a killed run left behind is found and
// removed by the next one.
package lab
