// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// flushDelay is how long a part of an answer waits for the next one, if the length of the whole is known. Most such answers
// come in one piece, which needs no flush before its end. Flushed at once, a GET of 1 KB by one client added 310 µs of CPU
// time, without it 260 µs (BenchmarkProxiedGet over HTTP/2, medians of three, on a machine with other work).
const flushDelay = 2 * time.Millisecond

// passage is what has been decided about a request that goes upstream.
type passage struct {
	url     *url.URL
	as      credential
	token   tokenKey    // of a clientToken
	known   bool        // upstream has accepted the credential before
	body    *replayBody // nil: it can be sent once
	write   *write      // nil: it writes nothing that this node serves
	timeout time.Duration
	end     context.Context // cuts it short
	watch   bool
}

// exchange is a request that goes upstream, with its answer.
type exchange struct {
	*handler
	passage
	w       http.ResponseWriter
	r       *http.Request // as the client sent it
	client  context.Context
	attempt *attempt

	mu       sync.Mutex
	answered bool // answers of 1xx come too late
	gone     bool // the client went away while one was written
}

// forward sends r on its way and streams the answer back.
func (h *handler) forward(w http.ResponseWriter, r *http.Request, way passage) {
	e := &exchange{handler: h, passage: way, w: w, r: r, client: r.Context(), attempt: h.newAttempt()}
	defer e.finish()
	if header, ok := e.readHeader(); ok {
		e.attempt.start(e.client, way.end, way.timeout, e.passEarly)
		e.read(header)
		return
	}
	e.attempt.start(e.client, way.end, way.timeout, nil)
	e.reverseProxy()
}

// finish must be deferred. It lets nobody take an answer that was cut short for complete, but for those watches that were
// cut short here: they end as if upstream had ended them.
func (e *exchange) finish() {
	failure := recover()
	cutShort := e.attempt.stop()
	if e.body != nil {
		e.body.close()
	}
	if cutShort && failure == nil {
		failure = http.ErrAbortHandler
	}
	gone := cutShort && e.watch || errors.Is(e.client.Err(), context.Canceled) // a client that went away is no event
	if failure == nil {
		return
	}
	if !gone || failure != any(http.ErrAbortHandler) {
		panic(failure)
	}
	if !e.watch && e.r.ProtoMajor == 1 {
		// It may have closed its half only, and still read: what is not complete must not get an end.
		_ = http.NewResponseController(e.w).SetWriteDeadline(time.Unix(1, 0))
	}
}

// reverseProxy leaves the request to httputil.ReverseProxy. Unlike apimachinery's UpgradeAwareHandler it reads the answer
// to an upgrade through the transport, so HTTP proxies, header limits and timeouts apply to it, and it announces trailers.
func (e *exchange) reverseProxy() {
	if e.body == nil {
		e.body = e.keepBody(e.r, e.known)
	}
	upgrade := httpstream.IsUpgradeRequest(e.r)
	if upgrade && !canHijack(e.w) {
		respondError(e.w, e.r, newStatusError(http.StatusHTTPVersionNotSupported, "HTTPVersionNotSupported",
			"connections can be upgraded over HTTP/1.1 only"))
		return
	}
	if hasBody(e.r) && e.r.ProtoMajor == 1 {
		// Otherwise net/http swallows what is left of the body before it lets an answer begin.
		_ = http.NewResponseController(e.w).EnableFullDuplex()
	}

	sent := e.r.WithContext(e.attempt.ctx)
	if e.body != nil {
		body, err := e.body.open()
		if err != nil {
			respondError(e.w, e.r, apierrors.NewInternalError(err))
			return
		}
		sent.Body, sent.GetBody = body, e.body.open
		if sent.ContentLength >= 0 {
			sent.ContentLength = int64(e.body.size) // a translated one is shorter
		}
	}
	proxy := &httputil.ReverseProxy{
		Transport:     e.transportFor(sent, upgrade),
		FlushInterval: flushDelay, // of answers whose length is known; what has none is flushed at once
		BufferPool:    copyBuffers,
		ErrorLog:      log.New(&logWriter{klog.FromContext(e.client)}, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = e.url
			p.Out.Host = ""
			p.Out.RequestURI = ""
			p.Out.Trailer = p.In.Trailer // filled in when the body has been read
			if e.write != nil {
				// The answer is read here, and goes on over the loopback.
				p.Out.Header.Del("Accept-Encoding")
			}
			passForwardedHeaders(p)
			applyIdentity(e.as, p.Out, p.In)
		},
		ModifyResponse: func(response *http.Response) error {
			// What the filters before us have set, upstream has set too.
			for name := range response.Header {
				e.w.Header().Del(name)
			}
			return e.accept(response)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { e.fail(err) },
	}
	proxy.ServeHTTP(e.w, sent)
}

// accept takes note of upstream's answer, and makes it that of this node.
func (e *exchange) accept(response *http.Response) error {
	e.attempt.gotAnswer()
	if e.body != nil {
		e.body.noteAnswer()
	}
	if e.as == clientToken {
		e.tokens.note(e.token, e.known, e.r.Method, response.StatusCode)
	}
	if len(response.Trailer) > 0 {
		// HTTP/2 may have both a length and trailers, HTTP/1.1 has trailers after chunks only.
		response.Header.Del("Content-Length")
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		e.w.Header().Del("Connection") // upstream's is in the answer
		e.attempt.endless()
		return prepareUpgrade(e.r, response)
	}
	closeIfRefused(e.w, e.r, response.StatusCode)
	if e.write != nil {
		return e.follower.follow(klog.NewContext(e.attempt.ctx, klog.FromContext(e.client)), e.write, response)
	}
	return nil
}

// fail answers a request that upstream did not answer.
func (e *exchange) fail(err error) {
	cause := context.Cause(e.attempt.ctx)
	if errors.Is(e.client.Err(), context.Canceled) || errors.Is(cause, errStopped) {
		panic(http.ErrAbortHandler)
	}
	klog.FromContext(e.client).V(4).Info("Request could not be proxied", "method", e.r.Method, "path", e.r.URL.Path, "err", err)
	closeAfterError(e.w, e.r)
	respondError(e.w, e.r, statusOf(err, cause, e.r.Method, e.attempt.wasSent()))
}

// keepBody returns r's body so that it can be sent again, nil if it is too large, or too much is kept already.
func (h *handler) keepBody(r *http.Request, known bool) *replayBody {
	budget, size := h.replays.of(known), int(min(r.ContentLength, maxReplayedBody+1))
	if !hasBody(r) || size < 0 || size > maxReplayedBody || !budget.reserve(size) {
		return nil
	}
	return newReplayBody(r.Body, size, func() { budget.release(size) })
}

// ways keeps tokens that upstream may refuse away from the connections of those that it accepts.
func (e *exchange) ways() *roundTrippers {
	switch {
	case e.as == serverOwn:
		return e.own
	case e.known:
		return e.anonymous
	default:
		return e.untried
	}
}

// transportFor returns the way of a request that is no plain read.
func (e *exchange) transportFor(r *http.Request, upgrade bool) http.RoundTripper {
	// Next to bad tokens, a body that cannot be sent again needs a connection of its own.
	if upgrade || !e.known && hasBody(r) && r.GetBody == nil {
		return e.ways().upgrade
	}
	return e.ways().plain
}

// passForwardedHeaders keeps what the client says about proxies before us, which ReverseProxy strips, and adds the
// client's address, as kube-aggregator does. It restores the query too, of which ReverseProxy drops what it cannot parse
// (the URL is set by the caller).
func passForwardedHeaders(p *httputil.ProxyRequest) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
	host, proto := p.Out.Header["X-Forwarded-Host"], p.Out.Header["X-Forwarded-Proto"]
	p.SetXForwarded()
	restore := func(name string, values []string) {
		p.Out.Header.Del(name)
		if len(values) > 0 {
			p.Out.Header[name] = values
		}
	}
	restore("X-Forwarded-Host", host)
	restore("X-Forwarded-Proto", proto)
}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// closeAfterError keeps net/http from waiting for the rest of a body that nobody will read.
func closeAfterError(w http.ResponseWriter, r *http.Request) {
	if !hasBody(r) || r.ProtoMajor != 1 {
		return
	}
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
}

// logWriter gives what ReverseProxy logs, which is about connections that broke, to the request's logger.
type logWriter struct {
	logger klog.Logger
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (int, error) {
	l.logger.V(4).Info("Proxying ended early", "reason", string(bytes.TrimSpace(p)))
	return len(p), nil
}

// copyBuffers are shared by all proxied bodies; their size is ReverseProxy's own.
var copyBuffers = &bufferPool{pool: sync.Pool{New: func() any { return new([32 * 1024]byte) }}}

type bufferPool struct {
	pool sync.Pool
}

var _ httputil.BufferPool = &bufferPool{}

// Get implements httputil.BufferPool.
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[32 * 1024]byte)[:] }

// Put implements httputil.BufferPool.
func (b *bufferPool) Put(buffer []byte) { b.pool.Put((*[32 * 1024]byte)(buffer)) }
