// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocket(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	pair := func() (near, far net.Conn) {
		near, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err = listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		return near, far
	}

	near, far := pair()
	quiet, err := watchOver(near)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := near.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || got != int(pingTimeout.Milliseconds()) {
			t.Errorf("TCP_USER_TIMEOUT is %d ms, %v", got, err)
		}
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE); err != nil || got != int(pingAfter.Seconds()) {
			t.Errorf("TCP_KEEPIDLE is %d s, %v", got, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !quiet() {
		t.Error("a new connection is not quiet")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was written is noticed", func() bool { return !quiet() })
	buffer := make([]byte, 1)
	if n, err := near.Read(buffer); n != 1 || err != nil {
		t.Errorf("and is still there: %d, %v", n, err)
	}
	if !quiet() {
		t.Error("a connection that was read is not quiet")
	}
	_ = far.Close()
	eventually(t, "the end is noticed", func() bool { return !quiet() })

	near, _ = pair()
	if quiet, err = watchOver(near); err != nil {
		t.Fatal(err)
	}
	_ = near.Close()
	if quiet() {
		t.Error("a closed connection is quiet")
	}
	if _, err := watchOver(near); err == nil {
		t.Error("a closed connection can be watched over")
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if _, err := watchOver(one); err == nil {
		t.Error("a pipe can be watched over")
	}
}
