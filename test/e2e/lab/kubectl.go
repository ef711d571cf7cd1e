// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"os/exec"
	"path/filepath"
)

// Kubectl runs kubectl as the administrator of the upstream and returns what it printed.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(l.KubectlCommand(ctx, args...))
}

// KubectlCommand is the command that Kubectl runs.
func (l *Lab) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return l.kubectl(ctx, l.Cloud.Host, l.Cloud.AdminKubeconfig, args)
}

// Kubectl runs kubectl on the node with the local kubeconfig and returns what it printed.
func (n *Node) Kubectl(ctx context.Context, args ...string) (string, error) {
	return output(n.KubectlCommand(ctx, args...))
}

// KubectlCommand is the command that Kubectl runs.
func (n *Node) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return n.lab.kubectl(ctx, n.Host, n.LocalKubeconfig(), args)
}

func (l *Lab) kubectl(ctx context.Context, h *Host, kubeconfig string, args []string) *exec.Cmd {
	own := []string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + filepath.Join(l.Dir, "kubectl-cache", h.Name)}
	return h.Command(ctx, l.Programs.Path("kubectl"), append(own, args...)...)
}
