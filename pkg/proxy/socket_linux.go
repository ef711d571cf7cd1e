// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// watchOver has the kernel close a connection that leads nowhere, as pings do over HTTP/2: after pingTimeout if what was
// sent is not confirmed (TCP_USER_TIMEOUT), and by keep-alive probes if nothing is sent. A connection that no such promise
// can be had for is refused.
func watchOver(connection net.Conn) error {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T is no TCP connection", connection)
	}
	if err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout}); err != nil {
		return err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var setting error
	err = raw.Control(func(fd uintptr) {
		setting = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(pingTimeout.Milliseconds()))
	})
	return errors.Join(err, setting)
}

// isSilent reports whether nothing has come over an idle connection: neither its end nor what nobody asked for.
func isSilent(connection net.Conn) bool {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && silent
}
