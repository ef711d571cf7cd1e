// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const secondUpstreamPort = "6444"

// SecondAPIServer is another kube-apiserver over the same etcd.
type SecondAPIServer struct {
	*Process
	// AdminKubeconfig and GridKubeconfig are those of the first, but for the address.
	AdminKubeconfig, GridKubeconfig string
}

// StartSecondAPIServer starts a kube-apiserver with the flags of the first and those given, and waits until it is
// ready. It ends with the lab; only one may run.
func (l *Lab) StartSecondAPIServer(ctx context.Context, flags ...string) (*SecondAPIServer, error) {
	if _, err := l.GridProgram(ctx); err != nil { // it makes the grid-apiserver's kubeconfig
		return nil, err
	}
	c := l.Cloud
	// Of a flag that comes twice the last counts. The Service default/kubernetes stays the first one's.
	args := append(c.apiServerArgs(), "--secure-port="+secondUpstreamPort, "--endpoint-reconciler-type=none")
	p, err := c.startPath(l.Logs, "kube-apiserver-second", c.programs.Path("kube-apiserver"), append(args, flags...)...)
	if err != nil {
		return nil, err
	}
	second := &SecondAPIServer{Process: p}
	if second.AdminKubeconfig, err = c.secondKubeconfig("second-admin", c.AdminKubeconfig); err != nil {
		return second, err
	}
	if second.GridKubeconfig, err = c.secondKubeconfig("second-grid", l.gridKubeconfig); err != nil {
		return second, err
	}
	config, err := c.Config(second.AdminKubeconfig)
	if err != nil {
		return second, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return second, err
	}
	return second, waitForProcess(ctx, p, time.Minute, "the second kube-apiserver is ready", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).Do(ctx).Error()
	})
}

// secondKubeconfig writes a copy of a kubeconfig that names the second kube-apiserver.
func (c *Cloud) secondKubeconfig(name, original string) (string, error) {
	config, err := clientcmd.LoadFromFile(original)
	if err != nil {
		return "", err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + net.JoinHostPort(c.Address.String(), secondUpstreamPort)
	}
	file := filepath.Join(c.dir, name+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// apiServerArgs are the flags of the running kube-apiserver.
func (c *Cloud) apiServerArgs() []string {
	around := len(c.Command(context.Background(), "").Args)
	return slices.Clone(c.APIServer.cmd.Args[around:])
}
