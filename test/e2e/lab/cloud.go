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
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	upstreamPort = "6443"
	// AdminToken is the bearer token of a member of system:masters.
	AdminToken = "lab-admin-token"
	// NobodyToken is the bearer token of a user without any right of its own.
	NobodyToken = "lab-nobody-token"
)

// Cloud is the upstream: etcd and kube-apiserver, with authentication and RBAC as in a real cluster.
type Cloud struct {
	*Host
	// AdminKubeconfig is the kubeconfig file of a member of system:masters.
	AdminKubeconfig string
	// Kubernetes is that administrator's client. It works from the lab's own process.
	Kubernetes kubernetes.Interface
	// APIServer is the running kube-apiserver.
	APIServer *Process

	programs  *Programs
	dir       string
	ca        *authority
	processes []*Process
}

// startCloud starts etcd and kube-apiserver and waits until the upstream is ready. Its files go to dir, its logs
// to logs.
func startCloud(ctx context.Context, h *Host, programs *Programs, dir, logs string, controllerManager bool) (c *Cloud, err error) {
	c = &Cloud{Host: h, programs: programs, dir: dir}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if c.ca, err = newAuthority(dir); err != nil {
		return c, err
	}
	if err = c.startEtcd(ctx, logs); err != nil {
		return c, err
	}
	if err = c.startAPIServer(ctx, logs); err != nil {
		return c, err
	}
	if controllerManager {
		err = c.startControllerManager(logs)
	}
	return c, err
}

func (c *Cloud) start(logs, name string, args ...string) (*Process, error) {
	p, err := startProcess(c.Host, logs, name, c.programs.Path(name), args...)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
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

func (c *Cloud) startAPIServer(ctx context.Context, logs string) error {
	serving, err := c.ca.issue("kube-apiserver", pkix.Name{CommonName: "kube-apiserver"},
		[]net.IP{c.Address.AsSlice(), net.IPv4(127, 0, 0, 1), net.ParseIP(KubernetesIP)},
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"})
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
		"--service-cluster-ip-range="+ServiceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+signingKey, "--service-account-signing-key-file="+signingKey,
		// Without kube-controller-manager no namespace has a default service account, and no pod could be made.
		"--disable-admission-plugins=ServiceAccount")
	if err != nil {
		return err
	}
	c.APIServer = p
	if c.AdminKubeconfig, err = c.clientKubeconfig("admin", pkix.Name{CommonName: "lab-admin", Organization: []string{"system:masters"}}); err != nil {
		return err
	}
	config, err := c.Config(c.AdminKubeconfig)
	if err != nil {
		return err
	}
	if c.Kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	return waitForProcess(ctx, p, time.Minute, "kube-apiserver is ready", func(ctx context.Context) error {
		return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).Do(ctx).Error()
	})
}

func (c *Cloud) startControllerManager(logs string) error {
	kubeconfig, err := c.clientKubeconfig("kube-controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"})
	if err != nil {
		return err
	}
	_, err = c.start(logs, "kube-controller-manager",
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--service-account-private-key-file="+filepath.Join(c.dir, "service-account.key"), "--root-ca-file="+c.ca.file(),
		"--use-service-account-credentials", "--leader-elect=false")
	return err
}

// clientKubeconfig writes a kubeconfig for the upstream with a client certificate of its own.
func (c *Cloud) clientKubeconfig(name string, subject pkix.Name) (string, error) {
	pair, err := c.ca.issue(name, subject, nil, nil)
	if err != nil {
		return "", err
	}
	return c.kubeconfig(name, &clientcmdapi.AuthInfo{ClientCertificateData: pair.certPEM, ClientKeyData: pair.keyPEM})
}

// kubeconfig writes <dir>/<name>.kubeconfig for the upstream.
func (c *Cloud) kubeconfig(name string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["upstream"] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort(c.Address.String(), upstreamPort),
		CertificateAuthorityData: c.ca.pem(),
	}
	config.AuthInfos[name] = user
	config.Contexts["upstream"] = &clientcmdapi.Context{Cluster: "upstream", AuthInfo: name}
	config.CurrentContext = "upstream"
	file := filepath.Join(c.dir, name+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

func (c *Cloud) stop() {
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].Stop(10 * time.Second)
	}
}

// Config loads a kubeconfig file for use from the lab's own process: it connects from inside the host. Client
// side rate limits are off.
func (h *Host) Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Dial = h.Dial
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and used on purpose
	return config, nil
}
