// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestNodesReachTheCloudUnlessCut(t *testing.T) {
	for name, reset := range map[string]bool{"dropped": false, "reset": true} {
		t.Run(name, func(t *testing.T) {
			n := startNetwork(t)
			listener, err := n.cloud.Listen(t.Context(), "tcp", "0.0.0.0:80")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
				}
			}()
			node0, node1 := dialEcho(t, n.nodes[0]), dialEcho(t, n.nodes[1])
			if err := errors.Join(echo(node0), echo(node1)); err != nil {
				t.Fatal(err)
			}
			if err := n.cut(t.Context(), n.nodes[0], reset); err != nil {
				t.Fatal(err)
			}
			want := os.ErrDeadlineExceeded
			if reset {
				want = syscall.ECONNRESET
			}
			if err := echo(node0); !errors.Is(err, want) {
				t.Errorf("the connection of the cut node: %v, want %v", err, want)
			}
			if err := echo(node1); err != nil {
				t.Errorf("the connection of another node: %v", err)
			}
			if err := n.heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := echo(dialEcho(t, n.nodes[0])); err != nil {
				t.Errorf("after the cut: %v", err)
			}
		})
	}
}

func TestLeftoversOfADeadRunAreRemovedAndThoseOfALivingOneStay(t *testing.T) {
	living := startNetwork(t)
	// A process id beyond the kernel's largest.
	dead := &Host{Namespace: namespacePrefix + "99999999-1-node0"}
	if _, err := output(exec.CommandContext(t.Context(), "ip", "netns", "add", dead.Namespace)); err != nil {
		t.Fatal(err)
	}
	sleeper := dead.Command(context.Background(), "sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = sleeper.Wait(); close(ended) }()
	err := WaitFor(t.Context(), 5*time.Second, "the program is inside", func(ctx context.Context) error {
		pids, err := output(exec.CommandContext(ctx, "ip", "netns", "pids", dead.Namespace))
		if err == nil && strings.TrimSpace(pids) != fmt.Sprint(sleeper.Process.Pid) {
			err = fmt.Errorf("in the namespace: %q", pids)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := removeLeftovers(t.Logf); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the program inside still runs")
	}
	if _, err := os.Stat(netnsDir + "/" + dead.Namespace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the namespace is still there: %v", err)
	}
	if _, err := os.Stat(netnsDir + "/" + living.cloud.Namespace); err != nil {
		t.Errorf("a namespace of a living run: %v", err)
	}
}

func startNetwork(t *testing.T) *network {
	t.Helper()
	if err := EnsurePackages(t.Context(), t.Logf); err != nil {
		t.Fatal(err)
	}
	n, err := newNetwork(t.Context(), NodeCount)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func dialEcho(t *testing.T, h *Host) net.Conn {
	t.Helper()
	conn, err := h.Dial(t.Context(), "tcp", cloudAddress.String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echo sends a byte and reads it back.
func echo(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}
