// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package e2e pins the programs of the lab in this module's go.mod.
package e2e

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
