// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// ResourceChecker tells whether a resource is served by this node at the moment. A resource that upstream does not
// have (servicecidrs before Kubernetes 1.33) is not. It is called for every request, from many goroutines at once.
type ResourceChecker interface {
	// Serves reports whether gr is served locally.
	Serves(gr schema.GroupResource) bool
}

var errNoRequestInfo = errors.New("no RequestInfo found in the context")

// NewRouter returns a handler that gives each request to local or to upstream, as IsLocal decides. The RequestInfo must
// already be in the request's context; a request without one is answered with an internal error.
func NewRouter(local, upstream http.Handler, nodeName string, served ResourceChecker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok {
			respondError(w, r, apierrors.NewInternalError(errNoRequestInfo))
			return
		}
		if IsLocal(info, r, nodeName, served) {
			local.ServeHTTP(w, r)
			return
		}
		upstream.ServeHTTP(w, r)
	})
}
