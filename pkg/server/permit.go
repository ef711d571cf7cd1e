// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"

	"github.com/grid-apiserver/grid-apiserver/pkg/auth"
)

type permitKey struct{}

// newPermit returns a function that reports whether the client may make a request,
// by upstream's reviews, and answers it if not. It does not use up the request: its
// credential is still to go upstream.
func newPermit(authenticator *auth.Authenticator, authorizer *auth.Authorizer, negotiated runtime.NegotiatedSerializer) func(http.ResponseWriter, *http.Request) bool {
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if permitted, ok := r.Context().Value(permitKey{}).(*bool); ok {
			*permitted = true
		}
	})
	handler = auth.WithAuthorization(handler, authorizer, negotiated)
	handler = auth.WithImpersonation(handler, authorizer, negotiated)
	handler = auth.WithAuthentication(handler, authenticator, negotiated)
	handler = genericapifilters.WithAuditInit(handler)
	return func(w http.ResponseWriter, r *http.Request) bool {
		permitted := false
		asked := r.Clone(context.WithValue(r.Context(), permitKey{}, &permitted)) // the filters take the credential away
		asked.Body = http.NoBody
		handler.ServeHTTP(w, asked)
		return permitted
	}
}
