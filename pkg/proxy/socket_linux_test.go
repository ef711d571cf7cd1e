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
	if err := watchOver(near); err != nil {
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
	if !isSilent(near) {
		t.Error("a new connection is not silent")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was written is noticed", func() bool { return !isSilent(near) })
	one := make([]byte, 1)
	if n, err := near.Read(one); n != 1 || err != nil {
		t.Errorf("and is still there: %d, %v", n, err)
	}
	if !isSilent(near) {
		t.Error("a connection that was read is not silent")
	}
	_ = far.Close()
	eventually(t, "the end is noticed", func() bool { return !isSilent(near) })

	near, _ = pair()
	_ = near.Close()
	if isSilent(near) || watchOver(near) == nil {
		t.Error("a closed connection is silent")
	}
}
