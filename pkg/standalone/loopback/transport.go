// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback lets a server be its own client without a network: a request
// is a call of the server's handler. So it works before the server listens,
// costs no encryption, and leaves no connection open when the server has ended.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Transport is a http.RoundTripper that calls a handler. It is safe for
// concurrent use; a request waits until there is a handler.
type Transport struct {
	set     sync.Once
	isSet   chan struct{}
	handler http.Handler
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

var _ http.RoundTripper = &Transport{}

// NewTransport returns a Transport without a handler.
func NewTransport() *Transport { return &Transport{isSet: make(chan struct{})} }

// SetHandler sets the handler. Later calls do nothing.
func (t *Transport) SetHandler(handler http.Handler) {
	t.set.Do(func() {
		t.handler = handler
		close(t.isSet)
	})
}

// Close refuses new requests, and returns when none is under way any more. It may
// be called more than once.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.running.Wait()
}

var errClosed = errors.New("the server has ended")

// serve runs a request in the background, unless the transport is closed.
func (t *Transport) serve(request func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	t.running.Go(request)
	return nil
}

// ClientConfig is like config, but for a client of the handler.
func (t *Transport) ClientConfig(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.TLSClientConfig = rest.TLSClientConfig{} // none goes with a transport of one's own
	out.Transport = t
	return out
}

// RoundTrip implements http.RoundTripper. The handler's context ends with that of
// the request, or when the body of the response is closed.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		closeBody(request)
		return nil, context.Cause(request.Context())
	}
	select {
	case <-t.isSet:
	case <-request.Context().Done():
		closeBody(request)
		return nil, context.Cause(request.Context())
	}
	ctx, cancel := context.WithCancel(request.Context())
	reader, writer := io.Pipe()
	w := &responseWriter{
		ctx: ctx, header: http.Header{}, body: writer, began: make(chan struct{}),
		response: &http.Response{
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
			Request: request, Body: &body{PipeReader: reader, cancel: cancel},
		},
	}
	canceled := request.Context()
	stop := context.AfterFunc(canceled, func() { _ = writer.CloseWithError(context.Cause(canceled)) })
	failed := make(chan error, 1)
	if err := t.serve(func() {
		defer stop()
		defer cancel()
		defer closeBody(request)
		failed <- w.serve(t.handler, received(ctx, request))
	}); err != nil {
		stop()
		cancel()
		closeBody(request)
		return nil, err
	}
	select {
	case <-w.began:
	case err := <-failed:
		if err != nil {
			return nil, err
		}
	case <-canceled.Done():
	}
	if canceled.Err() != nil { // whatever the handler writes, nobody reads
		return nil, context.Cause(canceled)
	}
	if w.response.StatusCode == http.StatusServiceUnavailable {
		// A server that stops answers so. It does not wait for its own clients to ask
		// again ten times, as those of client-go do without regard to their context.
		w.response.Header.Del("Retry-After")
	}
	return w.response, nil
}

// received is the request as a server has it.
func received(ctx context.Context, request *http.Request) *http.Request {
	out := request.Clone(ctx)
	out.RequestURI = out.URL.RequestURI()
	out.RemoteAddr = "127.0.0.1:0"
	if out.Host == "" {
		out.Host = out.URL.Host
	}
	if out.Body == nil {
		out.Body = http.NoBody
	}
	return out
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

// body ends the request when it is closed.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

var errAborted = errors.New("the handler was aborted")

// serve calls the handler. An error means that there is no response.
func (w *responseWriter) serve(handler http.Handler, request *http.Request) (err error) {
	defer func() {
		// A server survives the panics of its handlers, and closes the connection.
		if r := recover(); r != nil {
			err = errAborted
			if r != http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
				err = fmt.Errorf("%w: %v", errAborted, r)
			}
			_ = w.body.CloseWithError(err)
			if w.wroteHeader {
				err = nil // the reader of the body gets it
			}
		}
	}()
	handler.ServeHTTP(w, request)
	w.WriteHeader(http.StatusOK)
	return w.body.CloseWithError(context.Cause(w.ctx)) // nil, as a rule: all was read
}
