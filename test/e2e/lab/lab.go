// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options choose what Start starts, and how.
type Options struct {
	// Upstream is the kind of upstream; empty: KubeAPIServer.
	Upstream Kind
	// DualStack gives the upstream a second range of ClusterIPs, ServiceCIDR6.
	DualStack bool
	// ControllerManager also starts kube-controller-manager beside kube-apiserver.
	ControllerManager bool
	// Controllers are those that kube-controller-manager runs, as in its flag; empty: all.
	Controllers []string
	// DisableAdmission are admission plugins that kube-apiserver is to run without.
	DisableAdmission []string
	// NoNodes leaves out the nodes: hosts, Node objects and echo servers.
	NoNodes bool
	// Report gets progress lines; nil: they are dropped.
	Report Report
}

// Lab is a running cluster.
type Lab struct {
	Programs *Programs
	Cloud    *Cloud
	Nodes    []*Node
	// Dir holds everything of this run, Logs within it one file per program.
	Dir, Logs string

	report          Report
	network         *network
	gridKubeconfig  string // the upstream credential of every grid-apiserver
	proxyKubeconfig string // the upstream credential of a kube-proxy without grid-apiserver
	gridOnce        sync.Once
	gridPath        string
	gridErr         error
}

// Start brings up the namespaces, the upstream and the nodes. No grid-apiserver and no kube-proxy runs yet: see
// StartNodes. After an error nothing is left running, only the logs.
func Start(ctx context.Context, options Options) (*Lab, error) {
	report := options.Report
	if report == nil {
		report = func(string, ...any) {}
	}
	programs, err := prepare(ctx, report)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "grid-e2e-")
	if err != nil {
		return nil, err
	}
	l := &Lab{Programs: programs, Dir: dir, Logs: filepath.Join(dir, "logs"), report: report}
	if err := l.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start the lab (logs in %s): %w", l.Logs, err), l.Stop())
	}
	return l, nil
}

var preparing sync.Mutex

// prepare does what labs of one process share.
func prepare(ctx context.Context, report Report) (*Programs, error) {
	preparing.Lock()
	defer preparing.Unlock()
	if err := EnsurePackages(ctx, report); err != nil {
		return nil, err
	}
	if err := removeLeftovers(report); err != nil {
		return nil, err
	}
	return BuildPrograms(ctx, report)
}

func (l *Lab) start(ctx context.Context, options Options) (err error) {
	cloudDir := filepath.Join(l.Dir, "cloud")
	for _, dir := range []string{l.Logs, cloudDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	nodes := NodeCount
	if options.NoNodes {
		nodes = 0
	}
	if l.network, err = newNetwork(ctx, nodes); err != nil {
		return err
	}
	if options.Upstream == Standalone {
		l.report("building and starting grid-apiserver --standalone")
	} else {
		l.report("starting etcd and kube-apiserver")
	}
	if l.Cloud, err = startCloud(ctx, l.network.cloud, l.Programs, cloudDir, l.Logs, options); err != nil {
		return err
	}
	if l.proxyKubeconfig, err = l.Cloud.clientKubeconfig("kube-proxy", pkix.Name{CommonName: "system:kube-proxy"}); err != nil {
		return err
	}
	for i, host := range l.network.nodes {
		n := &Node{Host: host, Spare: spareAddress(i).String(), lab: l, dir: filepath.Join(l.Dir, host.Name)}
		n.DataDir = filepath.Join(n.dir, "grid-apiserver")
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, n)
		if err := n.startEcho(ctx); err != nil {
			return err
		}
		if err := l.RegisterNode(ctx, n, nil); err != nil {
			return err
		}
	}
	return nil
}

// GridProgram builds grid-apiserver from this checkout, once, and returns its path.
func (l *Lab) GridProgram(ctx context.Context) (string, error) {
	l.gridOnce.Do(func() {
		l.report("building grid-apiserver")
		if l.gridPath, l.gridErr = l.Programs.BuildGrid(ctx, l.Dir); l.gridErr == nil {
			l.gridErr = l.grantGrid(ctx)
		}
	})
	return l.gridPath, l.gridErr
}

// StartNodes makes sure that every node runs a kube-proxy in the given mode that talks to the given API server,
// and before it, if that is the one, a grid-apiserver. What already runs as wanted goes on.
func (l *Lab) StartNodes(ctx context.Context, via Via, mode ProxyMode) error {
	if via == ViaGrid {
		// Built before the nodes are started side by side, so that its time is not that of a node.
		if _, err := l.GridProgram(ctx); err != nil {
			return err
		}
	}
	errs := make([]error, len(l.Nodes))
	var wg sync.WaitGroup
	for i, n := range l.Nodes {
		wg.Go(func() { errs[i] = n.ensure(ctx, via, mode) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (n *Node) ensure(ctx context.Context, via Via, mode ProxyMode) error {
	if via == ViaGrid && (n.Grid == nil || !n.Grid.Running()) {
		if err := n.StartGrid(ctx); err != nil {
			return err
		}
	}
	if n.Proxy != nil && n.Proxy.Running() && n.ProxyVia == via && n.ProxyMode == mode {
		return nil
	}
	return n.StartProxy(ctx, via, mode)
}

// CutUpstream drops every packet between a node and the cloud until HealUpstream. With reset, the node's packets
// are answered by TCP resets: its connections end at once instead of hanging.
func (l *Lab) CutUpstream(ctx context.Context, n *Node, reset bool) error {
	return l.network.cut(ctx, n.Host, reset)
}

// HealUpstream undoes CutUpstream.
func (l *Lab) HealUpstream(ctx context.Context) error { return l.network.heal(ctx) }

// Stop ends everything and removes the namespaces. The files in Dir stay; see RemoveFiles.
func (l *Lab) Stop() error {
	var proxies, grids []*Process
	for _, n := range l.Nodes {
		proxies, grids = append(proxies, n.Proxy), append(grids, n.Grid)
		if n.echo != nil {
			_ = n.echo.Close()
		}
	}
	stopAll(5*time.Second, proxies...)
	stopAll(5*time.Second, grids...)
	if l.Cloud != nil {
		l.Cloud.stop()
	}
	if l.network == nil {
		return nil
	}
	return l.network.remove()
}

// RemoveFiles removes Dir, logs included.
func (l *Lab) RemoveFiles() error { return os.RemoveAll(l.Dir) }
