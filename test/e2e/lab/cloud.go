// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/x509/pkix"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kind says what the upstream is.
type Kind string

// The kinds of upstream.
const (
	// KubeAPIServer is etcd and kube-apiserver, with authentication and RBAC as in a real cluster.
	KubeAPIServer Kind = "kube-apiserver"
	// Standalone is grid-apiserver --standalone.
	Standalone Kind = "standalone"
)

const (
	upstreamPort = "6443"
	// AdminToken is the bearer token of a member of system:masters of kube-apiserver.
	AdminToken = "lab-admin-token"
	// NobodyToken is the bearer token of a user of kube-apiserver without any right of its own.
	NobodyToken = "lab-nobody-token"
)

// Cloud is the upstream.
type Cloud struct {
	*Host
	Kind Kind
	// AdminKubeconfig is the kubeconfig file of one who may do everything.
	AdminKubeconfig string
	// Kubernetes is that administrator's client. It works from the lab's own process.
	Kubernetes kubernetes.Interface
	// APIServer is the running kube-apiserver, or grid-apiserver --standalone.
	APIServer *Process
	// ControllerManager is the running kube-controller-manager, nil: there is none.
	ControllerManager *Process

	programs  *Programs
	dir       string
	ca        *authority // nil for Standalone
	processes []*Process
}

// startCloud starts the upstream and waits until it is ready. Its files go to dir, its logs to logs.
func startCloud(ctx context.Context, h *Host, programs *Programs, dir, logs string, options Options) (c *Cloud, err error) {
	c = &Cloud{Host: h, Kind: options.Upstream, programs: programs, dir: dir}
	if c.Kind == Standalone {
		err = c.startStandalone(ctx, logs, options)
	} else {
		c.Kind = KubeAPIServer
		err = c.startKubernetes(ctx, logs, options)
	}
	if err != nil {
		c.stop()
	}
	return c, err
}

// ready makes the administrator's client and waits until the API server is ready.
func (c *Cloud) ready(ctx context.Context, name string) error {
	return waitForProcess(ctx, c.APIServer, time.Minute, name+" is ready", func(ctx context.Context) error {
		config, err := c.Config(c.AdminKubeconfig)
		if err != nil {
			return err
		}
		if c.Kubernetes, err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
		return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).Do(ctx).Error()
	})
}

func (c *Cloud) start(logs, name string, args ...string) (*Process, error) {
	return c.startPath(logs, name, c.programs.Path(name), args...)
}

func (c *Cloud) startPath(logs, name, path string, args ...string) (*Process, error) {
	p, err := startProcess(c.Host, logs, name, path, args...)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

// clientKubeconfig writes a kubeconfig for the upstream with a client certificate of its own. Standalone knows one
// identity, its administrator.
func (c *Cloud) clientKubeconfig(name string, subject pkix.Name) (string, error) {
	if c.Kind == Standalone {
		return c.AdminKubeconfig, nil
	}
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
