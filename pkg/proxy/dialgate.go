// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// maxHandshakes is how many handshakes with upstream run at a time. net/http dials for every request that finds no
// connection, though all of them end up on the first HTTP/2 connection that is ready: with 1,000 watches that come back
// after an outage, 850 had no connection after 1.4 s on two cores, since 1,000 handshakes held each other up.
const maxHandshakes = 8

// errDialUnneeded ends a dial whose request has got another connection meanwhile. No request ever sees it.
var errDialUnneeded = errors.New("the request no longer needs this connection")

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialGate opens TLS connections, a few at a time, and only those that are still needed. For an upstream that speaks
// HTTP/1.1 alone, where each request needs a connection, the gate stays open. Safe for concurrent use.
type dialGate struct {
	dial    dialFunc
	config  *tls.Config
	timeout time.Duration // of the handshake
	slots   chan struct{}
	open    atomic.Bool
}

func newDialGate(dial dialFunc, config *tls.Config, timeout time.Duration) *dialGate {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	return &dialGate{dial: dial, config: config, timeout: timeout, slots: make(chan struct{}, maxHandshakes)}
}

// dialTLS has the signature of http.Transport's DialTLSContext.
func (g *dialGate) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	if !g.open.Load() {
		var unneeded <-chan struct{}
		if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
			unneeded = a.connection()
		}
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		case <-unneeded:
			return nil, errDialUnneeded
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		select {
		case <-unneeded: // both were ready
			return nil, errDialUnneeded
		default:
		}
	}
	return g.connect(ctx, network, address)
}

func (g *dialGate) connect(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := g.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	connection, err := handshake(ctx, raw, g.config, address)
	if err != nil {
		return nil, err
	}
	g.open.Store(connection.ConnectionState().NegotiatedProtocol != "h2")
	return connection, nil
}

// handshake makes a connection to the host in address one of TLS. On an error it closes it.
func handshake(ctx context.Context, raw net.Conn, config *tls.Config, address string) (*tls.Conn, error) {
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			_ = raw.Close()
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	connection := tls.Client(raw, config)
	if err := connection.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return connection, nil
}
