// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// busyReads is how many reads in a second make it worth while to open connections for them.
	busyReads = 50
	// maxReadConnections is how many of them there are at most. Further reads go over HTTP/2.
	maxReadConnections = 8
	// readConnectionIdle is how long one is kept that nobody uses. What is idle for longer may be dead, and nobody would know.
	readConnectionIdle = 5 * time.Second
	// readRetry is how long a dial that failed, or a connection that upstream soon closed, keeps from the next dial. Any other
	// that ends before it is idle does so for a tenth of that: a client that breaks off its reads costs one connection each,
	// over HTTP/2 it would cost none.
	readRetry = 10 * time.Second
	// lastingReads is what a connection must serve to have been worth it.
	lastingReads = 10
	// ticketTimeout is for the session tickets to be read that TLS sends after a handshake.
	ticketTimeout = time.Millisecond
	// maxAnswerHeader is net/http's limit for the headers of an answer.
	maxAnswerHeader = 10 << 20
	// maxInformational is how many answers of 1xx may come before an answer: what net/http lets pass if nobody asks for them.
	maxInformational = 5
)

var errAnswerHeader = errors.New("the headers of upstream's answer are too long")

// readTransport sends reads upstream. While there are many it does so over connections of HTTP/1.1, each of which one
// request has for itself: that takes a third less CPU time than HTTP/2, where every request and every answer changes
// goroutines several times. It never waits for such a connection. A read that finds none goes over HTTP/2, and so does one
// whose connection breaks before it is answered. Requests must have no body and must be repeatable. Safe for concurrent use.
type readTransport struct {
	http2 *reloadingTransport
}

var _ http.RoundTripper = &readTransport{}

// RoundTrip implements http.RoundTripper.
func (t *readTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, pool, err := t.http2.current()
	if err != nil {
		return nil, err
	}
	if !fitsHTTP1(r) || r.Context().Err() != nil {
		return base.RoundTrip(r)
	}
	if c := pool.take(r.URL); c != nil {
		response, err := c.roundTrip(r)
		if err == nil || r.Context().Err() != nil {
			return response, err
		}
	}
	return base.RoundTrip(r)
}

// fitsHTTP1 reports whether r means the same over HTTP/1.1. Only over HTTP/2 may a target have spaces, and be expected what
// no server knows.
func fitsHTTP1(r *http.Request) bool {
	_, expects := r.Header["Expect"]
	return !expects && !strings.Contains(r.URL.Opaque, " ") && !strings.Contains(r.URL.RawQuery, " ")
}

// readPool keeps the connections of one client certificate. Safe for concurrent use. A nil *readPool has none.
type readPool struct {
	dial    dialFunc
	proxy   func(*http.Request) (*url.URL, error)
	config  *tls.Config
	timeout time.Duration // of a dial with its handshake
	busy    int           // reads in a second, from which on connections are opened
	keep    time.Duration // how long one is kept that nobody uses
	retry   time.Duration // how long what was in vain keeps from the next dial
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	idle    []*readConnection // the one that was used last comes last
	open    int               // with those that are in use, and the one that is being opened
	sweeper *time.Timer       // runs while any is idle
	dialing bool
	retryAt time.Time
	second  time.Time // when the second began in which reads are counted
	reads   int
	many    bool // there were many in the second before
}

// newReadPool returns a pool that dials with config. It must be closed.
func newReadPool(dial dialFunc, proxy func(*http.Request) (*url.URL, error), config *tls.Config, timeout time.Duration) *readPool {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	p := &readPool{dial: dial, proxy: proxy, config: config, timeout: timeout, busy: busyReads, keep: readConnectionIdle, retry: readRetry}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// take returns an idle connection to the server in target for one request, nil if there is none. It has one opened for
// later requests where that is worth while.
func (p *readPool) take(target *url.URL) *readConnection {
	if p == nil {
		return nil
	}
	c := p.count(target)
	for c != nil && !c.isSilent() {
		p.drop(c, true)
		c = p.pop()
	}
	return c
}

// count counts a read and returns an idle connection. It has one opened if there is none, and there are many reads.
func (p *readPool) count(target *url.URL) *readConnection {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if since := now.Sub(p.second); since >= time.Second {
		p.many = since < 2*time.Second && p.reads >= p.busy
		p.second, p.reads = now, 0
	}
	p.reads++
	if c := p.popLocked(); c != nil {
		return c
	}
	p.many = p.many || p.reads >= p.busy
	if p.many && !p.dialing && p.open < maxReadConnections && !now.Before(p.retryAt) && p.ctx.Err() == nil {
		p.dialing = true
		p.open++
		go p.add(target)
	}
	return nil
}

func (p *readPool) pop() *readConnection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.popLocked()
}

func (p *readPool) popLocked() *readConnection {
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	return c
}

// add opens a connection and puts it into the pool.
func (p *readPool) add(target *url.URL) {
	c, err := p.connect(target)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = false
	if err != nil {
		p.open--
		p.retryAt = time.Now().Add(p.retry)
		return
	}
	p.putLocked(c)
}

var errNoReadConnection = errors.New("reads go over HTTP/2")

func (p *readPool) connect(target *url.URL) (*readConnection, error) {
	if through, err := p.proxy(&http.Request{Method: http.MethodGet, URL: target}); err != nil || through != nil || target.Scheme != "https" {
		return nil, errNoReadConnection // net/http knows how to speak to proxies
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	address := target.Host
	if target.Port() == "" {
		address = net.JoinHostPort(target.Hostname(), "443")
	}
	raw, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &readConnection{pool: p, raw: &shutter{Conn: raw}}
	if c.quiet, err = watchOver(raw); err != nil {
		_ = raw.Close()
		return nil, err
	}
	if c.connection, err = handshake(ctx, c.raw, p.config, address); err != nil {
		return nil, err
	}
	c.br, c.bw = bufio.NewReader(c), bufio.NewWriter(c.connection)
	return c, nil
}

// put gives a connection back that can be used again.
func (p *readPool) put(c *readConnection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putLocked(c)
}

func (p *readPool) putLocked(c *readConnection) {
	if p.ctx.Err() != nil {
		p.open--
		_ = c.raw.Close()
		return
	}
	c.idleSince = time.Now()
	p.idle = append(p.idle, c)
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.keep, p.sweep)
	}
}

// drop closes a connection that cannot be used again. byUpstream tells whose doing that is.
func (p *readPool) drop(c *readConnection, byUpstream bool) {
	_ = c.raw.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	pause := p.retry / 10
	if byUpstream && c.reads < lastingReads {
		pause = p.retry
	}
	if at := time.Now().Add(pause); at.After(p.retryAt) {
		p.retryAt = at
	}
}

// sweep closes what has been idle for too long.
func (p *readPool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	kept := slices.IndexFunc(p.idle, func(c *readConnection) bool { return now.Sub(c.idleSince) < p.keep })
	if kept < 0 {
		kept = len(p.idle)
	}
	p.closeLocked(kept)
	if p.sweeper = nil; len(p.idle) > 0 {
		p.sweeper = time.AfterFunc(p.idle[0].idleSince.Add(p.keep).Sub(now), p.sweep)
	}
}

// closeLocked closes the first n of the idle connections.
func (p *readPool) closeLocked(n int) {
	for _, c := range p.idle[:n] {
		_ = c.raw.Close()
	}
	p.open -= n
	p.idle = slices.Delete(p.idle, 0, n)
}

// close closes the idle connections now, and those that are in use when they have been used.
func (p *readPool) close() {
	if p == nil {
		return
	}
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked(len(p.idle))
	if p.sweeper != nil {
		p.sweeper.Stop()
		p.sweeper = nil
	}
}

// readConnection is a connection of HTTP/1.1 that has one request at a time. It is closed without the good-bye of TLS, which
// would have to be waited for.
type readConnection struct {
	pool       *readPool
	raw        *shutter
	quiet      func() bool // nothing waits in the socket to be read
	connection *tls.Conn   // over raw
	br         *bufio.Reader
	bw         *bufio.Writer
	left       int64 // what may still be read
	reads      int
	idleSince  time.Time
}

// Read implements io.Reader.
func (c *readConnection) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errAnswerHeader
	}
	n, err := c.connection.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// isSilent reports whether nothing has come over an idle connection: it must not be taken for the answer to what is sent
// next, and if it is the end, nothing needs to be sent.
func (c *readConnection) isSilent() bool {
	quiet := c.quiet()
	switch {
	case quiet:
		c.raw.shut = true // what TLS has read from the socket already is all there is
		defer func() { c.raw.shut = false }()
	case c.reads > 0:
		return false
	default: // session tickets
		if c.raw.SetReadDeadline(time.Now().Add(ticketTimeout)) != nil {
			return false
		}
	}
	c.left = 1
	_, err := c.br.Peek(1)
	if quiet {
		return errors.Is(err, errShut)
	}
	var network net.Error
	return errors.As(err, &network) && network.Timeout() && c.raw.SetReadDeadline(time.Time{}) == nil && c.quiet()
}

// shutter is the connection below TLS, which can be kept from reading it.
type shutter struct {
	net.Conn
	shut bool
}

// Read implements io.Reader.
func (s *shutter) Read(p []byte) (int, error) {
	if s.shut {
		return 0, errShut
	}
	return s.Conn.Read(p)
}

// errShut is a timeout to TLS, which goes on after one.
var errShut net.Error = shutError{}

type shutError struct{}

func (shutError) Error() string   { return "not to be read now" }
func (shutError) Timeout() bool   { return true }
func (shutError) Temporary() bool { return true }

// roundTrip sends r and returns its answer, whose body must be read to its end, or closed. After an error the connection
// is closed.
func (c *readConnection) roundTrip(r *http.Request) (*http.Response, error) {
	release := context.AfterFunc(r.Context(), func() { _ = c.raw.Close() })
	var answer *readBody
	defer func() { // also if a hook of the trace panics
		if answer == nil {
			c.pool.drop(c, release())
		}
	}()
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.connection, Reused: true})
	}
	response, err := c.ask(r, trace)
	if err != nil {
		return nil, err
	}
	c.reads++
	answer = &readBody{body: response.Body, c: c, release: release, closes: response.Close}
	response.Body = answer
	return response, nil
}

// ask sends r and reads the headers of its answer.
func (c *readConnection) ask(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	if err := r.Write(c.bw); err != nil {
		return nil, err
	}
	if err := c.bw.Flush(); err != nil {
		return nil, err
	}
	c.left = maxAnswerHeader
	for range maxInformational + 1 {
		response, err := http.ReadResponse(c.br, r)
		if err != nil {
			return nil, err
		}
		if response.StatusCode < 100 {
			return nil, fmt.Errorf("malformed HTTP status code %d", response.StatusCode)
		}
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64
			return response, nil
		}
		if trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(response.StatusCode, textproto.MIMEHeader(response.Header)); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("too many 1xx informational responses")
}

// readBody is the body of an answer. Its connection is used again if it was read to the end.
type readBody struct {
	body    io.Reader
	c       *readConnection
	release func() bool
	closes  bool  // upstream closes the connection
	ended   error // what further reads return
}

// Read implements io.Reader.
func (b *readBody) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	n, err := b.body.Read(p)
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. The body below would be read to its end, however long that takes.
func (b *readBody) Close() error {
	b.end(http.ErrBodyReadAfterClose)
	return nil
}

func (b *readBody) end(why error) {
	if b.ended != nil {
		return
	}
	b.ended = why
	whole := errors.Is(why, io.EOF)
	waited := b.release() // the client has not gone away
	if waited && whole && !b.closes && b.c.br.Buffered() == 0 {
		b.c.pool.put(b.c)
		return
	}
	b.c.pool.drop(b.c, waited && !errors.Is(why, http.ErrBodyReadAfterClose))
}
