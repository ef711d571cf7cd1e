// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

const (
	// retryAfterSeconds is told to clients whose review could not be made. Their
	// retries are what makes them work again when upstream is back.
	retryAfterSeconds = 2

	// The keys and values of kube-apiserver's audit annotations.
	auditDecision      = "authorization.k8s.io/decision"
	auditReason        = "authorization.k8s.io/reason"
	auditAllow         = "allow"
	auditForbid        = "forbid"
	auditInternalError = "internal error"
)

var errNoRequestInfo = errors.New("no RequestInfo found in the context")

// WithAuthentication passes on requests whose user a finds, with the user in the
// context, and without the credential and the headers of front proxies. Others end
// with 401, or with 503 and Retry-After if their token could not be reviewed.
// Reads of the health endpoints pass as the anonymous user, whatever credential they
// come with. RequestInfo must be in the context. It must not see proxied requests,
// whose token has to reach upstream.
func WithAuthentication(next http.Handler, a *Authenticator, negotiated runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := withReviewBudget(req.Context())
		info, ok := request.RequestInfoFrom(ctx)
		if !ok {
			respond(w, req, apierrors.NewInternalError(errNoRequestInfo), negotiated)
			return
		}
		if isHealthRead(info.IsResourceRequest, info.Verb, info.Path) {
			req = req.WithContext(request.WithUser(ctx, anonymous()))
			removeCredentials(req.Header)
			closeIdle(w, req)
			next.ServeHTTP(w, req)
			return
		}

		req = req.WithContext(ctx)
		start := time.Now()
		response, ok, err := a.AuthenticateRequest(req)
		request.TrackAuthenticationLatency(ctx, time.Since(start))
		switch {
		case IsReviewUnavailable(err):
			klog.FromContext(ctx).V(4).Info("Cannot authenticate the request", "err", err)
			closeIdle(w, req)
			respond(w, req, newUnavailable("the token cannot be reviewed", err), negotiated)
			return
		case err != nil || !ok:
			klog.FromContext(ctx).V(4).Info("Unauthorized", "path", info.Path, "err", err)
			closeIdle(w, req)
			respond(w, req, apierrors.NewUnauthorized("Unauthorized"), negotiated)
			return
		}
		removeCredentials(req.Header)
		next.ServeHTTP(w, req.WithContext(request.WithUser(ctx, response.User)))
	})
}

// WithAuthorization passes on requests that a allows. Others end with 403, or with 503
// and Retry-After if their right could not be reviewed.
func WithAuthorization(next http.Handler, a authorizer.UnconditionalAuthorizer, negotiated runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		attributes, err := genericapifilters.GetAuthorizerAttributes(ctx)
		if err != nil {
			respond(w, req, apierrors.NewInternalError(err), negotiated)
			return
		}
		start := time.Now()
		decision, reason, err := a.Authorize(ctx, attributes)
		request.TrackAuthorizationLatency(ctx, time.Since(start))
		// An authorizer may allow in spite of an error.
		if decision == authorizer.DecisionAllow {
			audit.AddAuditAnnotations(ctx, auditDecision, auditAllow, auditReason, reason)
			next.ServeHTTP(w, req)
			return
		}
		if err != nil {
			audit.AddAuditAnnotation(ctx, auditReason, auditInternalError)
			respond(w, req, newReviewError(err), negotiated)
			return
		}
		klog.FromContext(ctx).V(4).Info("Forbidden", "path", attributes.GetPath(), "reason", reason)
		audit.AddAuditAnnotations(ctx, auditDecision, auditForbid, auditReason, reason)
		responsewriters.Forbidden(attributes, w, req, reason, negotiated)
	})
}

// newReviewError is the answer to a request whose right could not be found out.
func newReviewError(err error) error {
	if IsReviewUnavailable(err) {
		return newUnavailable("access cannot be reviewed", err)
	}
	return apierrors.NewInternalError(err)
}

// newUnavailable is 503 also where there was no slot for the review. 429 would tell
// the clients beside a flood that they are the ones who ask too much.
func newUnavailable(what string, cause error) *apierrors.StatusError {
	why := "the upstream API server does not answer"
	if errors.Is(cause, errBusy) {
		why = errBusy.Error()
	}
	err := apierrors.NewServiceUnavailable(what + " because " + why)
	// ErrorNegotiated makes the Retry-After header from it.
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return err
}

func respond(w http.ResponseWriter, req *http.Request, err error, negotiated runtime.NegotiatedSerializer) {
	responsewriters.ErrorNegotiated(err, negotiated, metav1.Unversioned, w, req)
}

// removeCredentials takes the token, and the user that only a front proxy may name,
// from a request that has its user.
func removeCredentials(header http.Header) {
	header.Del("Authorization")
	headerrequest.ClearAuthenticationHeaders(header,
		headerrequest.StaticStringSlice{"X-Remote-User"},
		headerrequest.StaticStringSlice{"X-Remote-Uid"},
		headerrequest.StaticStringSlice{"X-Remote-Group"},
		headerrequest.StaticStringSlice{"X-Remote-Extra-"},
	)
}

// closeIdle ends an HTTP/2 connection after this request, as kube-apiserver does for
// clients without a user: HTTP/2 streams are too cheap for them (CVE-2023-44487).
// Streams that are under way on the connection go on.
func closeIdle(w http.ResponseWriter, req *http.Request) {
	if req.ProtoMajor == 2 {
		w.Header().Set("Connection", "close")
	}
}
