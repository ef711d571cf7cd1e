// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet serves the part of the kubelet's API that kube-apiserver calls for exec, attach, port-forward,
// logs and the proxy subresource of nodes. A pod here is a process on a host of the lab: there is no container
// runtime, and no isolation but the host's network namespace.
//
// The protocols are those of the real kubelet and its container runtimes, because the code is the same:
// k8s.io/cri-streaming (remotecommand and portforward, over SPDY, and over WebSocket up to v4) is what
// containerd and CRI-O serve streams with, and it stands on k8s.io/streaming. The kubelet's own server
// (k8s.io/kubernetes pkg/kubelet/server) is not used: it only redirects to a runtime's streaming server, and wants
// the whole of a kubelet around it. Routes and query parameters follow it.
package kubelet
