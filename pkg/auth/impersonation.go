// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
)

// WithImpersonation is kube-apiserver's impersonation for local requests, with the
// constrained rights (KEP-5284) and the older one: whoever may impersonate upstream may
// do so here, and everybody else gets 403. It stands between
// WithAuthentication and WithAuthorization. It adds to the stock filter that a review
// that could not be made ends with 503 and Retry-After.
func WithImpersonation(next http.Handler, a authorizer.UnconditionalAuthorizer, negotiated runtime.NegotiatedSerializer) http.Handler {
	stock := impersonation.WithConstrainedImpersonation(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if held, ok := w.(*heldResponse); ok {
			// Another way of being allowed needed no review.
			held.err = nil
			w = held.ResponseWriter
		}
		next.ServeHTTP(w, req)
	}), errorKeeper{a}, negotiated)

	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		held := &heldResponse{ResponseWriter: w, header: http.Header{}}
		stock.ServeHTTP(held, req.WithContext(context.WithValue(req.Context(), heldKey{}, held)))
		if held.err != nil {
			respond(w, req, newReviewError(held.err), negotiated)
		}
	})
}

type heldKey struct{}

// errorKeeper hands the error of a review to the heldResponse of the request. The
// stock filter drops it and answers 403.
type errorKeeper struct {
	authorizer.UnconditionalAuthorizer
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (k errorKeeper) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := k.UnconditionalAuthorizer.Authorize(ctx, attributes)
	// A denial of another way of being allowed does not make up for it.
	if held, ok := ctx.Value(heldKey{}).(*heldResponse); ok && err != nil {
		held.err = err
	}
	return decision, reason, err
}

// heldResponse swallows the stock filter's own answer when there is an error. Only the
// stock filter writes to it, the next handler has the real one.
type heldResponse struct {
	http.ResponseWriter
	header http.Header
	wrote  bool
	err    error
}

// Header implements http.ResponseWriter.
func (h *heldResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldResponse) WriteHeader(code int) {
	if h.err != nil || h.wrote {
		return
	}
	h.wrote = true
	for name, values := range h.header {
		h.ResponseWriter.Header()[name] = values
	}
	h.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (h *heldResponse) Write(p []byte) (int, error) {
	if h.err != nil {
		return len(p), nil //nolint:nilerr // the answer is swallowed, the error is told later
	}
	h.WriteHeader(http.StatusOK)
	return h.ResponseWriter.Write(p)
}
