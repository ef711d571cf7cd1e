// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	defaultRequestTimeout = 60 * time.Second // as kube-apiserver's --request-timeout
	// A client is to hear within 2 s that upstream is away. A new connection has defaultConnectTimeout, which is three
	// round trips of a bad link (400 ms) and some; an old one is doubted after stallAfter and then has as long again.
	defaultConnectTimeout = 1400 * time.Millisecond
	stallAfter            = 500 * time.Millisecond
	// stallRecheck: the link may go away while upstream thinks.
	stallRecheck = 5 * time.Second
)

var longRunning = genericfilters.BasicLongRunningRequestCheck(
	sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// LongRunning reports whether kube-apiserver takes r for a request without a time limit: watches, and the exec, attach,
// port-forward, proxy and log subresources.
func LongRunning(r *http.Request, info *request.RequestInfo) bool { return longRunning(r, info) }

// HandlerConfig is what NewHandler needs. Upstream is required.
type HandlerConfig struct {
	// Upstream is the server's own connection: host, CA, and its own credential, which may be a client certificate, a
	// token, or files of these that are replaced while the server runs. A path in Host is put before every path.
	Upstream *rest.Config
	// LocalIdentity accepts requests that came with the verified certificate of the local identity, and no others. Nil:
	// there is no local identity. Called concurrently.
	LocalIdentity authenticator.Request
	// ServedResources limits the write guard to resources that have a view at the moment. Nil: all that can have one.
	ServedResources ResourceChecker
	// View translates the revisions in writes and in the answers to them, and tells the objects that must not be written
	// from here. Nil: nothing is translated, and nothing differs.
	View View
	// Permit reports whether the client may make this request, by upstream's judgement, and answers it if not. It is asked
	// before a write is refused, or delayed, because of what the view has. Nil: everybody may.
	Permit func(http.ResponseWriter, *http.Request) bool
	// NodeName is the own node. It is named in refusals, so that a user knows whose view it is.
	NodeName string
	// RequestTimeout ends requests that are not long-running, with a Status 504 if nothing has been answered yet.
	// Zero: 60 s.
	RequestTimeout time.Duration
	// ConnectTimeout bounds how long a request waits for a connection, from the dial to the end of the TLS handshake.
	// Zero: 1.4 s.
	ConnectTimeout time.Duration
	// LongRunning tells the requests that RequestTimeout does not apply to. Nil: those of kube-apiserver (watches, exec,
	// attach, port-forward, proxy and log subresources).
	LongRunning request.LongRunningRequestCheck
	// Stopping ends the requests that LongRunning tells, and Stopped all others. A watch ends as if upstream had ended it;
	// other answers that are cut short are broken off, so that nobody takes them for complete. Nil: never.
	Stopping, Stopped context.Context
	// Clock measures the timeouts, and the age of certificate files. Nil: the real one.
	Clock clock.WithDelayedExecution
}

// handler is the streaming, upgrade-aware proxy. Safe for concurrent use.
type handler struct {
	cfg       HandlerConfig
	base      *url.URL
	anonymous *roundTrippers // carries no credential of the server; for tokens that upstream is known to accept
	untried   *roundTrippers // the same for all other tokens
	own       *roundTrippers
	tokens    *knownTokens
	guard     *writeGuard
	follower  *follower
	replays   budgets
	probe     *reachability
	answers   atomic.Uint64
}

var _ http.Handler = &handler{}

// NewHandler returns the proxy to cfg.Upstream. Requests must have their RequestInfo in the context and their
// Authorization header still on them. The handler starts no goroutine of its own; it has a method CloseIdleConnections()
// that closes what it keeps open between requests.
func NewHandler(cfg HandlerConfig) (http.Handler, error) {
	if cfg.Upstream == nil {
		return nil, errors.New("proxy: no upstream configured")
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = defaultRequestTimeout
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = defaultConnectTimeout
	}
	if cfg.LongRunning == nil {
		cfg.LongRunning = LongRunning
	}
	if cfg.Stopping == nil {
		cfg.Stopping = context.Background()
	}
	if cfg.Stopped == nil {
		cfg.Stopped = context.Background()
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	tls := cfg.Upstream.TLSClientConfig
	hasTLS := len(tls.CAFile) > 0 || len(tls.CAData) > 0 || len(tls.CertFile) > 0 || len(tls.CertData) > 0 || tls.Insecure
	base, _, err := rest.DefaultServerURL(cfg.Upstream.Host, "", schema.GroupVersion{}, hasTLS)
	if err != nil {
		return nil, fmt.Errorf("proxy: parse the upstream host: %w", err)
	}
	own, err := newRoundTrippers(cfg.Upstream, cfg.ConnectTimeout, cfg.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	anonymous, err := newRoundTrippers(rest.AnonymousClientConfig(cfg.Upstream), cfg.ConnectTimeout, cfg.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	untried, err := newRoundTrippers(rest.AnonymousClientConfig(cfg.Upstream), cfg.ConnectTimeout, cfg.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return &handler{
		cfg:       cfg,
		base:      base,
		own:       own,
		anonymous: anonymous,
		untried:   untried,
		tokens:    newKnownTokens(),
		guard:     newWriteGuard(cfg),
		follower:  newFollower(cfg.View),
		replays:   newBudgets(replayBudget),
		probe:     &reachability{url: base, transport: anonymous.upgrade, timeout: cfg.ConnectTimeout},
	}, nil
}

// CloseIdleConnections closes the upstream connections that no request uses.
func (h *handler) CloseIdleConnections() {
	h.own.closeIdle()
	h.anonymous.closeIdle()
	h.untried.closeIdle()
}

// ServeHTTP implements http.Handler. It panics with http.ErrAbortHandler when upstream breaks off an answer that has
// begun: there is no other way to tell the client that it is not complete.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wantsUpgrade(r) {
		w.Header().Set("Connection", "close") // unless upstream answers 101
	}
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.Path != r.URL.Path {
		// What was decided on another path says nothing about this one.
		respondError(w, r, apierrors.NewInternalError(errNoRequestInfo))
		return
	}
	t, err := targetOf(r)
	if err != nil {
		respondError(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	out, err := t.on(h.base)
	if err != nil {
		respondError(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	tokens := tokensOf(r)
	as, err := identify(r, info, t, len(tokens) > 0, h.cfg.LocalIdentity)
	if err != nil {
		respondError(w, r, err)
		return
	}
	if err := checkWatchRevision(r, info); err != nil {
		respondError(w, r, err)
		return
	}
	way := passage{url: out, as: as, known: true, timeout: h.cfg.RequestTimeout, end: h.cfg.Stopped, watch: info.Verb == "watch"}
	if as == clientToken {
		way.token = h.tokens.key(tokens)
		way.known = h.tokens.has(way.token)
	}
	way.write = writeOf(r, info, h.cfg.ServedResources, h.cfg.NodeName)
	if way.write != nil && way.write.readsBody() {
		if way.body, err = h.checkWrite(w, r, way); err != nil {
			if !errors.Is(err, errAnswered) {
				closeAfterError(w, r)
				way.write.warn(w.Header())
				respondError(w, r, err)
			}
			return
		}
	}
	if way.write != nil {
		// A client that does not read its answer must hold neither the body nor the answer for ever.
		controller := http.NewResponseController(w)
		if controller.SetWriteDeadline(time.Now().Add(h.cfg.RequestTimeout+bodyTimeout)) == nil {
			defer func() { _ = controller.SetWriteDeadline(time.Time{}) }()
		}
	}
	if h.cfg.LongRunning(r, info) {
		way.timeout, way.end = 0, h.cfg.Stopping
	}
	h.forward(w, r, way)
}

// checkWrite is the guard's check, which ends when the server stops.
func (h *handler) checkWrite(w http.ResponseWriter, r *http.Request, way passage) (*replayBody, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.cfg.Stopped, cancel)()
	return h.guard.check(w, r.WithContext(ctx), way.write, way.known)
}

// newAttempt makes an attempt, to be started.
func (h *handler) newAttempt() *attempt {
	return &attempt{
		clock:          h.cfg.Clock,
		connectTimeout: h.cfg.ConnectTimeout,
		stallAfter:     stallAfter,
		reachable:      h.probe,
		answers:        &h.answers,
	}
}
