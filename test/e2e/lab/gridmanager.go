// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// GridManager is the name of the command, and of its service account in kube-system.
const GridManager = "grid-controller-manager"

// InstallGridManager applies the shipped CRD and manifest of grid-controller-manager, as they are, waits until
// ServiceGrids are served, and builds the program. The upstream must be kube-apiserver.
func (l *Lab) InstallGridManager(ctx context.Context) (*GridManagerInstall, error) {
	artifacts := filepath.Join(l.Programs.Repository(), "artifacts")
	for _, file := range []string{"crd.yaml", "controller-manager.yaml"} {
		if _, err := l.Kubectl(ctx, "apply", "-f", filepath.Join(artifacts, file)); err != nil {
			return nil, fmt.Errorf("apply the shipped manifests: %w", err)
		}
	}
	if _, err := l.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/servicegrids.superedge.io"); err != nil {
		return nil, err
	}
	// So that it can tell who asks for its metrics.
	if _, err := l.Kubectl(ctx, "create", "clusterrolebinding", "grid-controller-manager-reviews", "--clusterrole=system:auth-delegator", "--serviceaccount=kube-system:"+GridManager); err != nil {
		return nil, err
	}
	token, err := l.Cloud.Kubernetes.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, GridManager, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	i := &GridManagerInstall{lab: l}
	if i.kubeconfig, err = l.Cloud.kubeconfig(GridManager, &clientcmdapi.AuthInfo{Token: token.Status.Token}); err != nil {
		return nil, err
	}
	i.path, err = l.Programs.BuildCommand(ctx, l.Dir, GridManager)
	return i, err
}

// GridManagerInstall starts grid-controller-managers.
type GridManagerInstall struct {
	lab        *Lab
	path       string
	kubeconfig string
}

// Start starts one beside the upstream, with the rights that its manifest gives, and waits until it is ready. Leases
// are short, so that another one takes over soon.
func (i *GridManagerInstall) Start(ctx context.Context, name string, port int, extra ...string) (*Process, error) {
	args := []string{
		"--kubeconfig=" + i.kubeconfig, fmt.Sprintf("--secure-port=%d", port), "-v=2",
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms",
	}
	p, err := i.lab.Cloud.startPath(i.lab.Logs, name, i.path, append(args, extra...)...)
	if err != nil {
		return nil, err
	}
	config := i.config(port)
	return p, waitForProcess(ctx, p, 30*time.Second, name+" is ready", func(ctx context.Context) error {
		code, body, err := Probe(ctx, config, "/readyz?verbose")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
}

func (i *GridManagerInstall) config(port int) *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		Dial:            i.lab.Cloud.Dial,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // it makes its certificate itself
	}
}

// Syncs returns how many ServiceGrids the one at a port has looked at, 0 if it does not tell.
func (i *GridManagerInstall) Syncs(ctx context.Context, port int) int {
	config := i.config(port)
	config.BearerToken = AdminToken
	_, body, err := Probe(ctx, config, "/metrics")
	if err != nil {
		return 0
	}
	const metric = `workqueue_work_duration_seconds_count{name="servicegrid"} `
	for line := range strings.Lines(body) {
		if count, ok := strings.CutPrefix(line, metric); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count))
			return n
		}
	}
	return 0
}
