// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 keeps the handles of named network namespaces.
const netnsDir = "/run/netns"

// Host is a network namespace with one address on the lab's network.
type Host struct {
	// Name is the host's name within the lab, for example "node0".
	Name string
	// Namespace is the name of its network namespace on this machine.
	Namespace string
	// Address is the host's own address on the lab's network.
	Address netip.Addr
}

// Command returns a command that runs path inside the host. The process id of the command is that of the
// program itself, because "ip netns exec" replaces itself by it.
func (h *Host) Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.Namespace, path}, args...)...)
}

// Run runs a command inside the host and returns what it printed on standard output; its error carries what it
// printed on standard error.
func (h *Host) Run(ctx context.Context, path string, args ...string) (string, error) {
	return output(h.Command(ctx, path, args...))
}

// Dial connects from inside the host. The address must be an IP literal with a port: a name would be resolved
// by another thread, outside the namespace. It fits rest.Config.Dial and http.Transport.DialContext.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := h.inside(func() (err error) {
		dialer := net.Dialer{Timeout: 5 * time.Second, FallbackDelay: -1}
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens inside the host.
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var listener net.Listener
	err := h.inside(func() (err error) {
		var config net.ListenConfig
		listener, err = config.Listen(ctx, network, address)
		return err
	})
	return listener, err
}

// inside calls fn on an operating system thread that has entered the host's namespace. A socket belongs to the
// namespace it was opened in, so it may be used from any thread afterwards. fn must not start goroutines that
// open sockets.
func (h *Host) inside(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer home.Close()
		target, err := os.Open(filepath.Join(netnsDir, h.Namespace))
		if err != nil {
			done <- fmt.Errorf("host %s: %w", h.Name, err)
			return
		}
		defer target.Close()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("host %s: enter namespace: %w", h.Name, err)
			return
		}
		result := fn()
		// A thread that cannot go back stays locked and so ends with this goroutine.
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err == nil {
			runtime.UnlockOSThread()
		}
		done <- result
	}()
	return <-done
}

// output runs a command and folds what it printed on standard error into its error.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
