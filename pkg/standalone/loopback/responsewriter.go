// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// responseWriter hands what a handler writes to the reader of a response. It is
// used by one goroutine, as any http.ResponseWriter.
type responseWriter struct {
	ctx         context.Context
	header      http.Header
	wroteHeader bool
	body        *io.PipeWriter
	// response is complete, but for its body, when began is closed.
	response *http.Response
	began    chan struct{}
}

var (
	_ http.ResponseWriter = &responseWriter{}
	// The filters of k8s.io/apiserver take a writer without CloseNotify for one that cannot flush.
	_ responsewriter.CloseNotifierFlusher = &responseWriter{}
)

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(status int) {
	if w.wroteHeader || status < http.StatusOK { // 1xx announce another one
		return
	}
	w.wroteHeader = true
	w.response.StatusCode = status
	w.response.Status = strconv.Itoa(status) + " " + http.StatusText(status)
	w.response.Header = w.header.Clone()
	if length, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil {
		w.response.ContentLength = length
	}
	close(w.began)
}

// Write implements http.ResponseWriter. It waits for the reader.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

// Flush implements http.Flusher. Nothing is held back but the header.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify implements http.CloseNotifier.
func (w *responseWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { closed <- true })
	return closed
}
