// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// hopByHop are the headers that concern one connection, as httputil.ReverseProxy has them.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// readHeader returns the headers with which the request goes upstream if it is a plain read: one without a body, and
// without anything that concerns the connection. Nearly all requests are. false: it is none.
func (e *exchange) readHeader() (http.Header, bool) {
	if e.r.Method != http.MethodGet && e.r.Method != http.MethodHead || hasBody(e.r) || e.write != nil || e.body != nil || len(e.r.Trailer) > 0 {
		return nil, false
	}
	header := make(http.Header, len(e.r.Header)+2)
	for name, values := range e.r.Header {
		if slices.Contains(hopByHop, name) {
			return nil, false
		}
		header[name] = values
	}
	// What the client says about proxies before us stays, and its address is added, as kube-aggregator does.
	if client, _, err := net.SplitHostPort(e.r.RemoteAddr); err == nil {
		if prior := header["X-Forwarded-For"]; len(prior) > 0 {
			client = strings.Join(prior, ", ") + ", " + client
		}
		header["X-Forwarded-For"] = []string{client}
	} else {
		delete(header, "X-Forwarded-For")
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = []string{""} // net/http would name itself
	}
	return header, true
}

// read passes a plain read on and its answer back. It does what httputil.ReverseProxy does, of which such a request needs
// little (docs/adr/0009-the-cost-of-a-hop.md).
func (e *exchange) read(header http.Header) {
	request := e.r.WithContext(e.attempt.ctx)
	request.URL, request.Host, request.RequestURI = e.url, "", ""
	request.Header, request.Body, request.TransferEncoding, request.Close = header, nil, nil, false
	applyIdentity(e.as, request, e.r)

	way := e.ways().plain
	if e.known && e.timeout > 0 {
		way = e.ways().reads
	}
	response, err := way.RoundTrip(request)
	if err == nil {
		defer response.Body.Close()
	}
	e.endEarly()
	if err != nil {
		e.fail(err)
		return
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		err = errBadUpgrade
	} else {
		err = e.accept(response)
	}
	if err != nil {
		e.fail(err)
		return
	}
	e.answer(response)
}

// answer streams upstream's answer to the client.
func (e *exchange) answer(response *http.Response) {
	for _, field := range response.Header["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			response.Header.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		delete(response.Header, name)
	}
	header := e.w.Header()
	maps.Copy(header, response.Header) // over what the filters before us have set
	announced := len(response.Trailer)
	if announced > 0 {
		header["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(response.Trailer)), ", ")}
	}
	e.w.WriteHeader(response.StatusCode)
	err := e.copyBody(response)
	_ = response.Body.Close() // the trailers are known now
	if err != nil {
		klog.FromContext(e.client).V(4).Info("Proxying ended early", "reason", err)
		panic(http.ErrAbortHandler)
	}
	if len(response.Trailer) == 0 {
		return
	}
	_ = http.NewResponseController(e.w).Flush() // HTTP/1.1: in chunks, which trailers need
	prefix := ""
	if len(response.Trailer) != announced {
		prefix = http.TrailerPrefix // not announced
	}
	for name, values := range response.Trailer {
		if len(values) > 0 { // else it was announced only, and HTTP/2 would wait for it
			header[prefix+name] = values
		}
	}
}

// copyBody copies the body piece by piece, as it comes. The headers go with the first one, or at once if every piece does.
func (e *exchange) copyBody(response *http.Response) error {
	buffer := copyBuffers.Get()
	defer copyBuffers.Put(buffer)
	out := &pieces{w: e.w, atOnce: response.ContentLength < 0 || e.timeout == 0}
	defer out.end()
	if out.atOnce && e.r.Method != http.MethodHead { // after whose headers nothing comes
		if err := out.flush(); err != nil {
			return err
		}
	}
	for {
		n, err := response.Body.Read(buffer)
		last := errors.Is(err, io.EOF)
		if n > 0 {
			if err := out.write(buffer[:n], last); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pieces writes an answer and flushes each piece but the last, at once or flushDelay later. Safe for concurrent use.
type pieces struct {
	w      http.ResponseWriter
	atOnce bool

	mu      sync.Mutex
	timer   *time.Timer // made when it is needed
	pending bool        // it is running
}

func (p *pieces) write(piece []byte, last bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.w.Write(piece); err != nil {
		return err
	}
	switch {
	case last:
	case p.atOnce:
		return p.flush()
	case p.pending:
	case p.timer == nil:
		p.pending, p.timer = true, time.AfterFunc(flushDelay, p.flushLate)
	default:
		p.pending = true
		p.timer.Reset(flushDelay)
	}
	return nil
}

func (p *pieces) flushLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending {
		p.pending = false
		_ = p.flush() // the next write fails as well
	}
}

func (p *pieces) flush() error { return http.NewResponseController(p.w).Flush() }

// end keeps everybody from the answer.
func (p *pieces) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = false
	if p.timer != nil {
		p.timer.Stop()
	}
}

// passEarly passes an answer of 1xx on. It has the signature of httptrace's Got1xxResponse, which is called on another
// goroutine, and may be when nobody waits for it any more.
func (e *exchange) passEarly(code int, early textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answered {
		return nil
	}
	header := e.w.Header()
	kept := header.Clone()
	maps.Copy(header, http.Header(early))
	e.w.WriteHeader(code)
	if e.client.Err() != nil {
		e.gone = true // and net/http may still be reading the headers
		return nil
	}
	clear(header)
	maps.Copy(header, kept)
	return nil
}

// endEarly says that there are no more answers of 1xx.
func (e *exchange) endEarly() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered = true
	if e.gone {
		panic(http.ErrAbortHandler)
	}
}
