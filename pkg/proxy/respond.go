// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// retryAfterSeconds is what a client is told to wait before it repeats a request that did not reach upstream. One second
// is the smallest value that the header can carry; a node that has lost its link has nothing better to offer.
const retryAfterSeconds = 1

// statusSerializer encodes a Status in what the client accepts: JSON, YAML or protobuf.
var statusSerializer = newStatusSerializer()

func newStatusSerializer() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	return serializer.NewCodecFactory(scheme)
}

// respondError answers with err as a Status in the encoding that the client accepts, JSON where it accepts none of ours.
func respondError(w http.ResponseWriter, r *http.Request, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := int(status.Status().Code)
		closeIfRefused(w, r, code)
		if code == http.StatusForbidden {
			w.Header().Set("X-Content-Type-Options", "nosniff") // as kube-apiserver, on no other Status
		}
	}
	w.Header().Set("Cache-Control", "no-cache, private") // as every answer of kube-apiserver
	// It has an Audit-Id too. Upstream's answers come with their own.
	genericapifilters.WithAuditInit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		responsewriters.ErrorNegotiated(err, statusSerializer, metav1.Unversioned, w, r)
	})).ServeHTTP(w, r)
}

// closeIfRefused ends the connection after an answer that leaves the client nothing to do on it: an upgrade that did not
// take place, since the client may have sent more in the other protocol already, and a 401 over HTTP/2, as kube-apiserver
// does. net/http turns the header into GOAWAY there.
func closeIfRefused(w http.ResponseWriter, r *http.Request, code int) {
	if wantsUpgrade(r) || code == http.StatusUnauthorized && r.ProtoMajor == 2 {
		w.Header().Set("Connection", "close")
	}
}

// newStatusError returns a Status for a code that apierrors has no constructor for.
func newStatusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: message,
	}}
}

func newUnavailable(message string, retryAfter int32) *apierrors.StatusError {
	err := newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	if retryAfter > 0 {
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	}
	return err
}

func newUnsupportedMediaType(message string) *apierrors.StatusError {
	return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, message)
}

func newTimeout(message string, retryAfter int32) *apierrors.StatusError {
	err := newStatusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, message)
	if retryAfter > 0 {
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	}
	return err
}

// statusOf says what the client is told about a request that upstream did not answer. cause is why the attempt ended,
// if it did. A write that may have been carried out gets no Retry-After: clients act on that header without asking.
func statusOf(err, cause error, method string, sent bool) error {
	retryAfter := int32(retryAfterSeconds)
	unknown := ""
	if sent && method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		retryAfter = 0
		unknown = "; whether the request was carried out is not known"
	}
	var network net.Error
	switch {
	case errors.Is(err, errBadUpgrade):
		return newStatusError(http.StatusBadGateway, "BadGateway", err.Error())
	case errors.Is(cause, errRequestTimeout), errors.Is(cause, context.DeadlineExceeded):
		return newTimeout("the upstream API server did not answer in time"+unknown, 0)
	case errors.Is(cause, errConnectTimeout), !sent && errors.As(err, &network) && network.Timeout():
		return newTimeout("the upstream API server cannot be reached: no connection in time", retryAfter)
	case errors.Is(cause, errConnectionDead):
		return newUnavailable("the connection to the upstream API server was lost"+unknown, retryAfter)
	case sent:
		return newUnavailable(fmt.Sprintf("the upstream API server did not answer: %v%s", err, unknown), retryAfter)
	default:
		return newUnavailable(fmt.Sprintf("the upstream API server cannot be reached: %v", err), retryAfter)
	}
}
