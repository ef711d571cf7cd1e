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
// can be had for is refused. quiet reports whether nothing has come over the connection that was not read, not even its end;
// it must not be called concurrently.
func watchOver(connection net.Conn) (quiet func() bool, err error) {
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("%T is no TCP connection", connection)
	}
	if err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout}); err != nil {
		return nil, err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var setting error
	err = raw.Control(func(fd uintptr) {
		setting = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(pingTimeout.Milliseconds()))
	})
	if err = errors.Join(err, setting); err != nil {
		return nil, err
	}
	var one [1]byte
	var nothing bool
	look := func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		nothing = errors.Is(err, unix.EAGAIN)
	}
	return func() bool { return raw.Control(look) == nil && nothing }, nil
}
