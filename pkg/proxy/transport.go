// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	// certificateCheckInterval bounds how long a replaced certificate file goes unnoticed. Checking costs a stat.
	certificateCheckInterval = 10 * time.Second
	// keepAliveInterval is how often the kernel probes an idle connection, as in client-go's own transport.
	keepAliveInterval = 30 * time.Second
	// idleConnections is what client-go keeps per host.
	idleConnections = 25
	// pingAfter and pingTimeout find a dead HTTP/2 connection under a silent watch: client-go waits 30 s and 15 s, which
	// suits a data centre. An edge link that went away should be noticed sooner, and one ping in 15 s costs nothing.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// protocol is what a transport speaks to upstream.
type protocol int

const (
	anyProtocol protocol = iota // HTTP/2 where upstream has it
	http1Only                   // upgrades exist in HTTP/1.1 alone; each has its own connection
)

// roundTrippers are the ways to upstream under one credential.
type roundTrippers struct {
	plain   http.RoundTripper
	reads   http.RoundTripper // as plain, for reads without a body that are soon over
	upgrade http.RoundTripper
	bases   []*reloadingTransport
}

// newRoundTrippers builds both ways for the credential in cfg, which may be none.
func newRoundTrippers(cfg *rest.Config, dialTimeout time.Duration, now func() time.Time) (*roundTrippers, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "" // the client's own, or none
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read the upstream client configuration: %w", err)
	}
	out := &roundTrippers{}
	for speak, to := range map[protocol]*http.RoundTripper{anyProtocol: &out.plain, http1Only: &out.upgrade} {
		base := &reloadingTransport{config: tc, protocol: speak, dialTimeout: dialTimeout, now: now}
		if _, _, err := base.current(); err != nil {
			return nil, err
		}
		out.bases = append(out.bases, base)
		if *to, err = transport.HTTPWrappersForConfig(tc, base); err != nil {
			return nil, fmt.Errorf("wrap the upstream transport: %w", err)
		}
		if speak == http1Only {
			continue
		}
		if out.reads, err = transport.HTTPWrappersForConfig(tc, &readTransport{http2: base}); err != nil {
			return nil, fmt.Errorf("wrap the upstream transport: %w", err)
		}
	}
	return out, nil
}

func (t *roundTrippers) closeIdle() {
	for _, base := range t.bases {
		base.closeIdle()
	}
}

// reloadingTransport is an http.Transport that is replaced when a certificate file changes. A connection keeps the client
// certificate that it was opened with, and an API server refuses every request on it once that has expired; requests that
// are under way finish on the old connections. Safe for concurrent use.
type reloadingTransport struct {
	config      *transport.Config
	protocol    protocol
	dialTimeout time.Duration
	now         func() time.Time

	mu        sync.Mutex
	transport *http.Transport
	pool      *readPool // nil: all goes over transport
	stamps    []fileStamp
	checked   time.Time
}

var _ http.RoundTripper = &reloadingTransport{}

// fileStamp changes when a file does.
type fileStamp struct {
	modified time.Time
	size     int64
}

// RoundTrip implements http.RoundTripper.
func (t *reloadingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, _, err := t.current()
	if err != nil {
		return nil, err
	}
	return base.RoundTrip(r)
}

// current returns the transport for the files as they are, and the pool beside it, if there is one. A file that cannot be
// read at the moment (it is being replaced) leaves the old ones in use.
func (t *reloadingTransport) current() (*http.Transport, *readPool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.transport != nil && now.Sub(t.checked) < certificateCheckInterval {
		return t.transport, t.pool, nil
	}
	t.checked = now
	stamps := t.readStamps()
	if t.transport != nil && slices.Equal(stamps, t.stamps) {
		return t.transport, t.pool, nil
	}
	fresh, pool, err := t.build()
	if err != nil {
		if t.transport != nil {
			return t.transport, t.pool, nil
		}
		return nil, nil, fmt.Errorf("build the upstream transport: %w", err)
	}
	t.closeIdleLocked()
	t.transport, t.pool, t.stamps = fresh, pool, stamps
	return fresh, pool, nil
}

func (t *reloadingTransport) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeIdleLocked()
}

func (t *reloadingTransport) closeIdleLocked() {
	if t.transport != nil {
		t.transport.CloseIdleConnections()
	}
	t.pool.close()
}

func (t *reloadingTransport) readStamps() []fileStamp {
	var stamps []fileStamp
	for _, name := range []string{t.config.TLS.CAFile, t.config.TLS.CertFile, t.config.TLS.KeyFile} {
		if name == "" {
			continue
		}
		var stamp fileStamp
		if info, err := os.Stat(name); err == nil {
			stamp = fileStamp{modified: info.ModTime(), size: info.Size()}
		}
		stamps = append(stamps, stamp)
	}
	return stamps
}

func (t *reloadingTransport) build() (*http.Transport, *readPool, error) {
	config := *t.config // TLSConfigFor fills in what it reads from files
	tlsConfig, err := transport.TLSConfigFor(&config)
	if err != nil {
		return nil, nil, err
	}
	if config.TLS.ReloadTLSFiles {
		// Read again for every handshake, and so not by TLSConfigFor.
		if _, err := tls.LoadX509KeyPair(config.TLS.CertFile, config.TLS.KeyFile); err != nil {
			return nil, nil, err
		}
	}
	dial := (&net.Dialer{Timeout: t.dialTimeout, KeepAlive: keepAliveInterval}).DialContext
	if config.DialHolder != nil && config.DialHolder.Dial != nil {
		dial = config.DialHolder.Dial
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	base := &http.Transport{
		Proxy:               proxy,
		DialContext:         dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: t.dialTimeout,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     90 * time.Second,
		// The client's Accept-Encoding, or its absence, is upstream's to honour.
		DisableCompression: true,
	}
	wantsHTTP2 := tlsConfig == nil || len(tlsConfig.NextProtos) == 0 || slices.Contains(tlsConfig.NextProtos, "h2")
	if t.protocol == anyProtocol && wantsHTTP2 {
		base.ForceAttemptHTTP2 = true
		base.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
		// Not used for connections through an HTTP proxy.
		base.DialTLSContext = newDialGate(dial, tlsConfig, t.dialTimeout).dialTLS
		return base, newReadPool(dial, proxy, tlsConfig, t.dialTimeout), nil
	}
	base.Protocols = new(http.Protocols)
	base.Protocols.SetHTTP1(true)
	if tlsConfig != nil {
		tlsConfig.NextProtos = nil
	}
	// A connection whose upgrade was refused is closed, never used for another request.
	base.DisableKeepAlives = t.protocol == http1Only
	return base, nil, nil
}
