// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	echoPort = "8080"
	gridPort = "51006"
	// requestTimeout bounds one request of a client on a node; over the lab's network one takes about a millisecond.
	requestTimeout = 2 * time.Second
)

// Via says which API server a kube-proxy talks to.
type Via string

// The API servers of a kube-proxy.
const (
	ViaGrid     Via = "grid-apiserver"
	ViaUpstream Via = "kube-apiserver"
)

// ProxyMode is kube-proxy's --proxy-mode.
type ProxyMode string

// The modes of kube-proxy that the lab runs.
const (
	NFTables ProxyMode = "nftables"
	IPTables ProxyMode = "iptables"
)

// Node is a host with an echo server and, once started, a grid-apiserver and a kube-proxy.
type Node struct {
	*Host
	// Spare is a second address of the node, where its echo server answers too.
	Spare string
	// DataDir is grid-apiserver's data directory.
	DataDir string
	// Grid is the grid-apiserver that was started last, nil before.
	Grid *Process
	// Proxy is the kube-proxy that was started last, nil before; ProxyVia and ProxyMode say how.
	Proxy     *Process
	ProxyVia  Via
	ProxyMode ProxyMode

	lab  *Lab
	dir  string
	echo *http.Server
}

// LocalKubeconfig is the file that grid-apiserver writes for the clients of its node.
func (n *Node) LocalKubeconfig() string { return filepath.Join(n.DataDir, "kube-proxy.kubeconfig") }

// GridArgs are the flags of the node's grid-apiserver.
func (n *Node) GridArgs() []string {
	return []string{"--node-name=" + n.Name, "--kubeconfig=" + n.lab.gridKubeconfig, "--data-dir=" + n.DataDir, "-v=2"}
}

// StartGrid starts the node's grid-apiserver and waits until it is ready.
func (n *Node) StartGrid(ctx context.Context, extra ...string) error {
	// This makes the credential that the flags name.
	if _, err := n.lab.GridProgram(ctx); err != nil {
		return err
	}
	p, err := n.RunGrid(ctx, "grid-apiserver-"+n.Name, append(n.GridArgs(), extra...)...)
	if err != nil {
		return err
	}
	n.Grid = p
	return waitForProcess(ctx, n.Grid, 30*time.Second, "grid-apiserver on "+n.Name+" is ready", n.gridReady)
}

// RunGrid runs a grid-apiserver on the node with exactly the given flags and waits for nothing. Its log has the
// given name. Ending it is the caller's.
func (n *Node) RunGrid(ctx context.Context, name string, args ...string) (*Process, error) {
	path, err := n.lab.GridProgram(ctx)
	if err != nil {
		return nil, err
	}
	return startProcess(n.Host, n.lab.Logs, name, path, args...)
}

func (n *Node) gridReady(ctx context.Context) error {
	config, err := n.Config(n.LocalKubeconfig())
	if err != nil {
		return err
	}
	code, body, err := Probe(ctx, rest.AnonymousClientConfig(config), "/readyz?verbose")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("/readyz answers %d: %s", code, body)
	}
	return err
}

// LocalConfig is the connection of a client on the node that uses the local kubeconfig.
func (n *Node) LocalConfig() (*rest.Config, error) { return n.Config(n.LocalKubeconfig()) }

// TokenConfig is a connection to the node's grid-apiserver with a bearer token instead of the local identity.
func (n *Node) TokenConfig(token string) (*rest.Config, error) {
	config, err := n.LocalConfig()
	if err != nil {
		return nil, err
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return config, nil
}

// View is a client of the node's grid-apiserver with the local identity.
func (n *Node) View() (kubernetes.Interface, error) {
	config, err := n.LocalConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// StartProxy replaces the node's kube-proxy by one in the given mode that talks to the given API server, and
// waits until it has programmed its rules.
func (n *Node) StartProxy(ctx context.Context, via Via, mode ProxyMode) error {
	n.Proxy.Stop(10 * time.Second)
	// Also the rules of the other mode: iptables is Debian's nft variant.
	if _, err := n.Run(ctx, "nft", "flush ruleset"); err != nil {
		return err
	}
	kubeconfig := n.LocalKubeconfig()
	if via == ViaUpstream {
		kubeconfig = n.lab.proxyKubeconfig
	}
	config, err := n.proxyConfig(kubeconfig, mode)
	if err != nil {
		return err
	}
	n.Proxy, err = startProcess(n.Host, n.lab.Logs, "kube-proxy-"+n.Name, n.lab.Programs.Path("kube-proxy"),
		"--config="+config, "--hostname-override="+n.Name, "-v=2")
	if err != nil {
		return err
	}
	n.ProxyVia, n.ProxyMode = via, mode
	// Its /healthz is no sign: it answers 200 before the first rules too. A request to a ClusterIP before them
	// would not only fail, connection tracking would also keep its retries away from the rules.
	return waitForProcess(ctx, n.Proxy, 30*time.Second, "kube-proxy on "+n.Name+" has programmed its rules", func(ctx context.Context) error {
		rules, err := n.Run(ctx, "nft", "list", "ruleset")
		if err == nil && !strings.Contains(rules, KubernetesIP) {
			err = errors.New("no rules for default/kubernetes")
		}
		return err
	})
}

// proxyConfig writes a KubeProxyConfiguration. Rules follow a change within 50 ms, and the connection tracking
// limits, which a namespace cannot set, are left alone.
func (n *Node) proxyConfig(kubeconfig string, mode ProxyMode) (string, error) {
	sync := map[string]any{"minSyncPeriod": "50ms", "syncPeriod": "30s"}
	content, err := yaml.Marshal(map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"clientConnection":   map[string]any{"kubeconfig": kubeconfig},
		"mode":               mode,
		"bindAddress":        n.Address.String(),
		"healthzBindAddress": "127.0.0.1:10256",
		"metricsBindAddress": "127.0.0.1:10249",
		"conntrack":          map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"nftables":           sync,
		"iptables":           sync,
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(n.dir, "kube-proxy.yaml")
	return file, os.WriteFile(file, content, 0o644)
}

// Get is a GET from inside the node on a connection of its own. An answer other than 200 is an error.
func (n *Node) Get(ctx context.Context, url string) (string, error) {
	client := http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, response.Status, body)
	}
	return strings.TrimSpace(string(body)), err
}

// startEcho answers every request with the node's name and the address that was reached.
func (n *Node) startEcho(ctx context.Context) error {
	listener, err := n.Listen(ctx, "tcp4", "0.0.0.0:"+echoPort)
	if err != nil {
		return err
	}
	n.echo = &http.Server{
		ReadHeaderTimeout: requestTimeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			address := r.Context().Value(http.LocalAddrContextKey).(net.Addr).(*net.TCPAddr).IP
			fmt.Fprintf(w, "%s %s\n", n.Name, address)
		}),
	}
	go func() {
		if err := n.echo.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			n.lab.report("echo server of %s: %v", n.Name, err)
		}
	}()
	return nil
}

// Probe is a GET of a path that need not be a Kubernetes resource; the query is part of the path.
func Probe(ctx context.Context, config *rest.Config, path string) (code int, body string, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
