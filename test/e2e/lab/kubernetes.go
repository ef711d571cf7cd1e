// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startKubernetes starts etcd, kube-apiserver and, if wanted, kube-controller-manager.
func (c *Cloud) startKubernetes(ctx context.Context, logs string, options Options) (err error) {
	if c.ca, err = newAuthority(c.dir); err != nil {
		return err
	}
	if err = c.startEtcd(ctx, logs); err != nil {
		return err
	}
	if err = c.startAPIServer(ctx, logs, options); err != nil {
		return err
	}
	if options.ControllerManager {
		err = c.startControllerManager(logs, options.Controllers)
	}
	return err
}

func (c *Cloud) startEtcd(ctx context.Context, logs string) error {
	// Plain HTTP and no fsync: it listens on the loopback of its own namespace and dies with the lab.
	p, err := c.start(logs, "etcd",
		"--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380")
	if err != nil {
		return err
	}
	return waitForProcess(ctx, p, 30*time.Second, "etcd listens", func(ctx context.Context) error {
		conn, err := c.Dial(ctx, "tcp", "127.0.0.1:2379")
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func (c *Cloud) startAPIServer(ctx context.Context, logs string, options Options) error {
	serving, err := c.ca.issue("kube-apiserver", pkix.Name{CommonName: "kube-apiserver"},
		[]net.IP{c.Address.AsSlice(), net.IPv4(127, 0, 0, 1), net.ParseIP(KubernetesIP)},
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"})
	if err != nil {
		return err
	}
	kubeletClient, err := c.ca.issue("kube-apiserver-kubelet-client", pkix.Name{CommonName: kubeletClientName}, nil, nil)
	if err != nil {
		return err
	}
	signingKey := filepath.Join(c.dir, "service-account.key")
	if err := newSigningKey(signingKey); err != nil {
		return err
	}
	tokens := filepath.Join(c.dir, "tokens.csv")
	lines := fmt.Sprintf("%s,lab-admin,1,\"system:masters\"\n%s,lab-nobody,2\n", AdminToken, NobodyToken)
	if err := os.WriteFile(tokens, []byte(lines), 0o600); err != nil {
		return err
	}
	p, err := c.start(logs, "kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", "--secure-port="+upstreamPort, "--advertise-address="+c.Address.String(),
		"--tls-cert-file="+serving.certFile, "--tls-private-key-file="+serving.keyFile,
		"--client-ca-file="+c.ca.file(), "--token-auth-file="+tokens,
		"--authorization-mode=Node,RBAC",
		"--kubelet-client-certificate="+kubeletClient.certFile, "--kubelet-client-key="+kubeletClient.keyFile,
		"--kubelet-certificate-authority="+c.ca.file(), "--kubelet-preferred-address-types=InternalIP",
		"--service-cluster-ip-range="+serviceCIDRs(options),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+signingKey, "--service-account-signing-key-file="+signingKey,
		// Without kube-controller-manager no namespace has a default service account, and no pod could be made.
		"--disable-admission-plugins="+strings.Join(append([]string{"ServiceAccount"}, options.DisableAdmission...), ","))
	if err != nil {
		return err
	}
	c.APIServer = p
	if c.AdminKubeconfig, err = c.clientKubeconfig("admin", pkix.Name{CommonName: "lab-admin", Organization: []string{"system:masters"}}); err != nil {
		return err
	}
	return c.ready(ctx, "kube-apiserver")
}

func (c *Cloud) startControllerManager(logs string, controllers []string) error {
	kubeconfig, err := c.clientKubeconfig("kube-controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"})
	if err != nil {
		return err
	}
	if len(controllers) == 0 {
		controllers = []string{"*"}
	}
	c.ControllerManager, err = c.start(logs, "kube-controller-manager", "--controllers="+strings.Join(controllers, ","),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--service-account-private-key-file="+filepath.Join(c.dir, "service-account.key"), "--root-ca-file="+c.ca.file(),
		"--use-service-account-credentials", "--leader-elect=false",
		// Its own limit of 20 requests in a second is for large clusters.
		"--kube-api-qps=500", "--kube-api-burst=1000")
	return err
}
