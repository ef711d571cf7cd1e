// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
	responsewriters.RespondWithError(w, r, err, statusSerializer)
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
