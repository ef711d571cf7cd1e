// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// errBadUpgrade: upstream switched to a protocol that nobody asked for.
var errBadUpgrade = errors.New("upstream switched to another protocol than was requested")

// errUpstreamClosed ends the copying of an upgraded connection in both directions.
var errUpstreamClosed = errors.New("upstream closed the upgraded connection")

// forward sends r to the URL out with the credential as, and streams the answer back. httputil.ReverseProxy moves the
// bytes: unlike apimachinery's UpgradeAwareHandler it reads the answer to an upgrade through the transport, so HTTP
// proxies, header limits and timeouts apply to it, and it announces trailers.
func (h *handler) forward(w http.ResponseWriter, r *http.Request, out *url.URL, as credential, timeout time.Duration) {
	client := r.Context()
	defer func() {
		// A client that went away is no event. Any other broken answer must end as a broken connection.
		if failure := recover(); failure != nil {
			if failure == any(http.ErrAbortHandler) && errors.Is(client.Err(), context.Canceled) {
				return
			}
			panic(failure)
		}
	}()

	a := h.newAttempt(client, timeout)
	defer a.stop()

	ways := h.anonymous
	if as == serverOwn {
		ways = h.own
	}
	transport, upgrade := ways.plain, httpstream.IsUpgradeRequest(r)
	if upgrade {
		if !canHijack(w) {
			respondError(w, r, newStatusError(http.StatusHTTPVersionNotSupported, "HTTPVersionNotSupported",
				"connections can be upgraded over HTTP/1.1 only"))
			return
		}
		transport = ways.upgrade
	}
	if hasBody(r) && r.ProtoMajor == 1 {
		// Otherwise net/http swallows what is left of the body before it lets an answer begin.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}

	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		BufferPool:    copyBuffers,
		ErrorLog:      log.New(&logWriter{klog.FromContext(client)}, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = out
			p.Out.Host = ""
			p.Out.RequestURI = ""
			p.Out.Trailer = p.In.Trailer // filled in when the body has been read
			passForwardedHeaders(p)
			applyIdentity(as, p.Out, p.In)
		},
		ModifyResponse: func(response *http.Response) error {
			a.gotAnswer()
			// What the filters before us have set, upstream has set too.
			for name := range response.Header {
				w.Header().Del(name)
			}
			if len(response.Trailer) > 0 {
				// HTTP/2 may have both a length and trailers, HTTP/1.1 has trailers after chunks only.
				response.Header.Del("Content-Length")
			}
			if response.StatusCode == http.StatusSwitchingProtocols {
				a.endless()
				return prepareUpgrade(r, response)
			}
			if upgrade {
				response.Header.Set("Connection", "close")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(client.Err(), context.Canceled) {
				panic(http.ErrAbortHandler)
			}
			klog.FromContext(client).V(4).Info("Request could not be proxied", "method", r.Method, "path", r.URL.Path, "err", err)
			closeAfterError(w, r)
			respondError(w, r, statusOf(err, context.Cause(a.ctx), r.Method, a.wasSent()))
		},
	}
	proxy.ServeHTTP(w, r.WithContext(a.ctx))
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

// prepareUpgrade checks the protocol of a 101 answer and makes the connection end when either side ends, as it does in
// kube-apiserver: half-closed connections would outlive clients that are gone. On an error the caller closes it.
func prepareUpgrade(r *http.Request, response *http.Response) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), response.Header.Get("Upgrade")) {
		return errBadUpgrade
	}
	connection, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		return errBadUpgrade
	}
	response.Body = &upgradedConnection{connection}
	return nil
}

// upgradedConnection has no CloseWrite, and ends with an error where the connection ends.
type upgradedConnection struct {
	io.ReadWriteCloser
}

// Read implements io.Reader.
func (c *upgradedConnection) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	if errors.Is(err, io.EOF) {
		err = errUpstreamClosed
	}
	return n, err
}

// canHijack reports whether the connection below w can be taken over.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
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

// statusOf says what the client is told about a request that upstream did not answer. cause is why the attempt ended,
// if it did. A write that may have been carried out gets no Retry-After: clients act on that header without asking.
func statusOf(err, cause error, method string, sent bool) error {
	retryAfter := int32(retryAfterSeconds)
	unknown := ""
	if sent && method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		retryAfter = 0
		unknown = "; whether the request was carried out is not known"
	}
	var network net.Error
	switch {
	case errors.Is(err, errBadUpgrade):
		return newStatusError(http.StatusBadGateway, "BadGateway", err.Error())
	case errors.Is(cause, errRequestTimeout), errors.Is(cause, context.DeadlineExceeded):
		return newTimeout("the upstream API server did not answer in time"+unknown, 0)
	case errors.Is(cause, errConnectTimeout), !sent && errors.As(err, &network) && network.Timeout():
		return newTimeout("the upstream API server cannot be reached: no connection in time", retryAfter)
	case errors.Is(cause, errConnectionDead):
		return newUnavailable("the connection to the upstream API server was lost"+unknown, retryAfter)
	case sent:
		return newUnavailable(fmt.Sprintf("the upstream API server did not answer: %v%s", err, unknown), retryAfter)
	default:
		return newUnavailable(fmt.Sprintf("the upstream API server cannot be reached: %v", err), retryAfter)
	}
}
