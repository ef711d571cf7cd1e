// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// NodeCount is the number of nodes in the lab.
	NodeCount = 3
	// ServiceCIDR is where ClusterIPs come from.
	ServiceCIDR = "10.96.0.0/16"
	// ServiceCIDR6 is where those of the second family come from, with Options.DualStack.
	ServiceCIDR6 = "fd00:10:96::/112"
	// KubernetesIP is the ClusterIP of default/kubernetes.
	KubernetesIP = "10.96.0.1"

	networkBits     = 24
	namespacePrefix = "grid-e2e-"
)

var cloudAddress = netip.MustParseAddr("10.97.0.2")

func nodeAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, 0, byte(10 + i)}) }

// spareAddress is a second address of a node, for one more endpoint on it.
func spareAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, 0, byte(20 + i)}) }

// networks counts the networks of this process.
var networks atomic.Int32

// network is the set of namespaces of one lab. All links are made inside the namespaces, so the machine's own
// network never sees them.
type network struct {
	prefix string
	lan    *Host // holds the bridge; has no address
	cloud  *Host
	nodes  []*Host
}

func newNetwork(ctx context.Context, nodes int) (*network, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	n := &network{prefix: fmt.Sprintf("%s%d-%s-%d-", namespacePrefix, os.Getpid(), start, networks.Add(1))}
	host := func(name string, address netip.Addr) *Host {
		return &Host{Name: name, Namespace: n.prefix + name, Address: address}
	}
	n.lan = host("lan", netip.Addr{})
	n.cloud = host("cloud", cloudAddress)
	for i := range nodes {
		n.nodes = append(n.nodes, host(fmt.Sprintf("node%d", i), nodeAddress(i)))
	}
	if err := n.create(ctx); err != nil {
		return nil, errors.Join(err, n.remove())
	}
	return n, nil
}

func (n *network) create(ctx context.Context) error {
	var steps script
	steps.add("ip netns add %s", n.lan.Namespace)
	steps.add("ip -n %s link add br0 type bridge", n.lan.Namespace)
	steps.add("ip -n %s link set br0 up", n.lan.Namespace)
	for _, h := range append([]*Host{n.cloud}, n.nodes...) {
		steps.add("ip netns add %s", h.Namespace)
		steps.add("ip -n %s link set lo up", h.Namespace)
		steps.add("ip -n %s link add eth0 type veth peer name %s netns %s", h.Namespace, h.Name, n.lan.Namespace)
		steps.add("ip -n %s link set %s master br0 up", n.lan.Namespace, h.Name)
		steps.add("ip -n %s addr add %s/%d dev eth0", h.Namespace, h.Address, networkBits)
		steps.add("ip -n %s link set eth0 up", h.Namespace)
	}
	for i, h := range n.nodes {
		steps.add("ip -n %s addr add %s/%d dev eth0", h.Namespace, spareAddress(i), networkBits)
		// A ClusterIP needs some route before the rules of kube-proxy see the packet.
		steps.add("ip -n %s route add %s dev eth0", h.Namespace, ServiceCIDR)
		steps.add("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0", h.Namespace)
	}
	return steps.run(ctx)
}

// remove ends whatever still runs inside the namespaces and removes them. It does not take the caller's context:
// it has to work after an interrupt too.
func (n *network) remove() error { return removeNamespaces(n.prefix) }

// cut drops, in both directions, every packet between a node and the cloud. With reset, packets of the node are
// answered by a TCP reset, so connections end at once.
func (n *network) cut(ctx context.Context, node *Host, reset bool) error {
	verdict := "drop"
	if reset {
		verdict = "reject with tcp reset"
	}
	rules := fmt.Sprintf(`table inet cut {
	chain in { type filter hook input priority -10; ip saddr %[1]s meta l4proto tcp %[2]s; ip saddr %[1]s drop; }
	chain out { type filter hook output priority -10; ip daddr %[1]s tcp flags & rst == rst accept; ip daddr %[1]s drop; }
}`, node.Address, verdict)
	_, err := n.cloud.Run(ctx, "nft", rules)
	return err
}

// heal undoes cut.
func (n *network) heal(ctx context.Context) error {
	_, err := n.cloud.Run(ctx, "nft", "delete table inet cut")
	return err
}

// removeLeftovers removes the namespaces of runs whose process is gone.
func removeLeftovers(report Report) error {
	entries, err := os.ReadDir(netnsDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dead := map[string]bool{}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), namespacePrefix)
		parts := strings.SplitN(rest, "-", 3)
		if !ours || len(parts) != 3 {
			continue
		}
		pid, err := strconv.Atoi(parts[0])
		if err != nil {
			continue
		}
		if start, err := startTime(pid); err == nil && start == parts[1] {
			continue
		}
		dead[namespacePrefix+parts[0]+"-"+parts[1]+"-"] = true
	}
	var errs []error
	for prefix := range dead {
		report("removing what a former run left behind (%s*)", prefix)
		errs = append(errs, removeNamespaces(prefix))
	}
	return errors.Join(errs...)
}

func removeNamespaces(prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		pids, err := output(exec.CommandContext(ctx, "ip", "netns", "pids", entry.Name()))
		errs = append(errs, err)
		for _, field := range strings.Fields(pids) {
			// The process that removes may have a thread of its own in there (Host.inside).
			if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		_, err = output(exec.CommandContext(ctx, "ip", "netns", "delete", entry.Name()))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// startTime returns when a process started, in clock ticks since boot: together with the process id it names a
// process for good, as ids are used again.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The command name, in parentheses, may hold spaces; the start time is field 22 of proc_pid_stat(5).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("unexpected /proc/%d/stat", pid)
	}
	return fields[19], nil
}

// script is a list of simple commands without quoting.
type script []string

func (s *script) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s script) run(ctx context.Context) error {
	for _, line := range s {
		words := strings.Fields(line)
		if _, err := output(exec.CommandContext(ctx, words[0], words[1:]...)); err != nil {
			return err
		}
	}
	return nil
}
