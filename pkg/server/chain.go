// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/auth"
	"github.com/grid-apiserver/grid-apiserver/pkg/proxy"
)

// chain are the handlers around the REST storages.
type chain struct {
	nodeName      string
	gate          *gate
	served        proxy.ResourceChecker
	authenticator *auth.Authenticator
	authorizer    *auth.Authorizer
	upstream      http.Handler
}

// build is the server's BuildHandlerChainFunc. It differs from the default of
// genericapiserver in that requests part before authentication: those that go
// upstream are authenticated and authorised there. Seen from the client:
//
//	request info -> router -> proxy
//	                     `--> deadline -> authentication -> impersonation ->
//	                          limit -> authorization -> gate -> REST storage
func (c *chain) build(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
	var negotiated runtime.NegotiatedSerializer = config.Serializer

	local := c.gate.wrap(apiHandler, negotiated)
	local = auth.WithAuthorization(local, c.authorizer, negotiated)
	local = withLimits(local, config)
	local = auth.WithImpersonation(local, c.authorizer, negotiated)
	local = auth.WithAuthentication(local, c.authenticator, negotiated)
	// Warnings are written by the handlers and must not race with a timeout.
	local = genericapifilters.WithWarningRecorder(local)
	local = withTimeouts(local, config, negotiated)
	local = genericfilters.WithWaitGroup(local, config.LongRunningFunc, config.NonLongRunningRequestWaitGroup)
	local = genericfilters.WithWatchTerminationDuringShutdown(local, shutdownSignal{config.ShutdownInitiatedNotify()}, config.WatchRequestWaitGroup)
	local = genericapifilters.WithCacheControl(local)
	// What nobody reads when a request is proxied: 36 allocations.
	local = genericapifilters.WithLatencyTrackers(local)
	local = logged(local, config)
	local = genericapifilters.WithRequestReceivedTimestamp(local)
	local = genericapifilters.WithAuditInit(local)

	handler := proxy.NewRouter(local, logged(c.upstream, config), c.nodeName, c.served)
	return withStackRoom(withRequestInfo(handler, config.RequestInfoResolver))
}

// logged logs requests, with the audit ID of those that are answered here, and panics.
func logged(next http.Handler, config *genericapiserver.Config) http.Handler {
	return genericfilters.WithPanicRecovery(genericfilters.WithHTTPLogging(next), config.RequestInfoResolver)
}

// withRequestInfo is genericapiserver's filter. What it answers has an audit ID, as all answers have that are made here.
func withRequestInfo(next http.Handler, resolver request.RequestInfoResolver) http.Handler {
	refusing := genericapifilters.WithAuditInit(genericapifilters.WithRequestInfo(next, resolver))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			refusing.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	})
}

// localIdentitySlots is how many requests of the local identity may be in flight.
// kube-proxy and the kubectl of an operator use a few.
const localIdentitySlots = 50

// withLimits bounds the requests in flight. The local identity has slots of its
// own: whoever holds the others, with answers that are not read for example,
// must not keep kube-proxy from the view. Health checks are not counted: a
// kubelet would restart a server that refuses them because it is busy.
func withLimits(next http.Handler, config *genericapiserver.Config) http.Handler {
	limit := func(slots int) http.Handler {
		return genericfilters.WithMaxInFlightLimit(next, slots, slots, config.LongRunningFunc)
	}
	everybody, localIdentity := limit(config.MaxRequestsInFlight), limit(localIdentitySlots)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := request.UserFrom(r.Context())
		info, _ := request.RequestInfoFrom(r.Context())
		switch {
		case info != nil && !info.IsResourceRequest && info.Path != "/metrics":
			next.ServeHTTP(w, r)
		case user != nil && auth.IsLocalIdentity(user):
			localIdentity.ServeHTTP(w, r)
		default:
			everybody.ServeHTTP(w, r)
		}
	})
}

// withTimeouts ends requests that are not long-running: with a Status 504 if nothing
// was answered yet; else their answers, if they are not read.
func withTimeouts(next http.Handler, config *genericapiserver.Config, negotiated runtime.NegotiatedSerializer) http.Handler {
	next = genericfilters.WithTimeoutForNonLongRunningRequests(next, config.LongRunningFunc)
	next = genericapifilters.WithRequestDeadline(next, nil, nil, config.LongRunningFunc, negotiated, config.RequestTimeout)
	return withWriteDeadline(next, config)
}

// timeoutGrace is what the Status 504 gets to be written. HTTP/2 resets a stream at
// its write deadline, whether a write is under way or not: were it that of the
// request, the client would learn of an internal error.
const timeoutGrace = 2 * time.Second

// withWriteDeadline ends answers that the client does not read: a handler that is
// blocked in a write holds its slot, and the timeout filter cannot end it.
func withWriteDeadline(next http.Handler, config *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		if info == nil || config.LongRunningFunc(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		timeout := config.RequestTimeout + timeoutGrace
		if !info.IsResourceRequest {
			// Health and metrics are short.
			timeout = healthWriteTimeout
		}
		controller := http.NewResponseController(w)
		if err := controller.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			klog.FromContext(r.Context()).V(4).Info("Cannot bound the time of an answer", "err", err)
		}
		next.ServeHTTP(w, r)
		// The connection of HTTP/1.1 goes on with other requests. What is still
		// buffered is small.
		_ = controller.SetWriteDeadline(time.Time{})
	})
}

// healthWriteTimeout bounds how long the answer to a health check or a request
// for metrics takes to be read.
const healthWriteTimeout = 10 * time.Second

// shutdownSignal tells watches that the server is going to stop.
type shutdownSignal struct{ stopping <-chan struct{} }

// ShuttingDown implements request.ServerShutdownSignal.
func (s shutdownSignal) ShuttingDown() <-chan struct{} { return s.stopping }

// portOf returns the port that a listener was given.
func portOf(l net.Listener) int {
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		return addr.Port
	}
	return 0
}
