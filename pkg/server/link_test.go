// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// link is a listener whose connections can be cut.
type link struct {
	net.Listener

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

// listen opens a listener; an address that was just given up is waited for.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var last error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l
		}
		last = err
	}
	t.Fatalf("listen on %s: %v", address, last)
	return nil
}

// Accept implements net.Listener. While the link is cut, connections end as
// soon as they begin.
func (l *link) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if l.cut {
			l.mu.Unlock()
			conn.Close()
			continue
		}
		c := &linkConn{Conn: conn, link: l}
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		return c, nil
	}
}

// setCut ends all connections and refuses new ones, or stops to do so.
func (l *link) setCut(cut bool) {
	l.mu.Lock()
	l.cut = cut
	conns := l.conns
	if cut {
		l.conns = map[net.Conn]struct{}{}
	}
	l.mu.Unlock()
	if !cut {
		return
	}
	for c := range conns {
		c.(*linkConn).Conn.Close()
	}
}

type linkConn struct {
	net.Conn
	link *link
}

// Close implements net.Conn.
func (c *linkConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	if err := c.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
