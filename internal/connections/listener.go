// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connections ends the connections of a server that stops.
package connections

import (
	"net"
	"sync"
)

// Listener is a listener that knows the connections it has accepted. An idle
// connection of HTTP/2 stays open for a second after the server has said that it
// goes away, which is most of what a stop takes; this lets the server's owner
// close what is left when the requests are done.
type Listener struct {
	net.Listener

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

// NewListener returns a Listener over l.
func NewListener(l net.Listener) *Listener {
	return &Listener{Listener: l, open: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = accepted.Close()
		return c, nil // whoever reads from it gets the error
	}
	l.open[c] = struct{}{}
	return c, nil
}

// CloseConnections closes the connections that are open, and those that are
// accepted later. It may be called concurrently with all other methods.
func (l *Listener) CloseConnections() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = map[*conn]struct{}{}
	l.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}

type conn struct {
	net.Conn
	listener *Listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
