// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// reachability tells a slow upstream from one that is gone, for requests that wait on an old connection: there a link that
// went away looks like an answer that takes its time, until TCP gives up minutes later. It opens a new connection, through
// the same proxy and with the same TLS settings but no credential. Callers at the same time share one attempt.
type reachability struct {
	url       *url.URL
	transport http.RoundTripper // keeps no connections
	timeout   time.Duration

	mu        sync.Mutex
	running   *probe
	reachedAt time.Time
}

// reachableFor is how long a good answer is good for, so that many slow requests do not cost a handshake each.
const reachableFor = time.Second

type probe struct {
	done chan struct{}
	ok   bool // valid once done is closed
}

// check reports whether a new connection to upstream can be opened now. When ctx ends first, it reports true: nothing
// is known.
func (p *reachability) check(ctx context.Context) bool {
	p.mu.Lock()
	if !p.reachedAt.IsZero() && time.Since(p.reachedAt) < reachableFor {
		p.mu.Unlock()
		return true
	}
	current := p.running
	if current == nil {
		current = &probe{done: make(chan struct{})}
		p.running = current
		go p.run(current)
	}
	p.mu.Unlock()
	select {
	case <-current.done:
		return current.ok
	case <-ctx.Done():
		return true
	}
}

func (p *reachability) run(current *probe) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	connected := make(chan struct{})
	var once sync.Once
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		// The handshake is over and that is all we wanted to know: the request need not be sent.
		once.Do(func() { close(connected) })
		cancel()
	}})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.JoinPath("/livez").String(), nil)
	if err == nil {
		var response *http.Response
		if response, err = p.transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
	select {
	case <-connected:
		current.ok = true
	default:
	}
	p.mu.Lock()
	p.running = nil
	p.reachedAt = time.Time{}
	if current.ok {
		p.reachedAt = time.Now()
	}
	p.mu.Unlock()
	close(current.done)
}
