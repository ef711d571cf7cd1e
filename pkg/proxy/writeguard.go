// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// maxGuardedBody is the limit of kube-apiserver for the body of a write (MaxRequestBodyBytes of its generic server), so
// what is refused here would be refused there.
const maxGuardedBody = 3 * 1024 * 1024

// isGuarded reports whether a request writes one object of a resource whose local copies have view revisions. The body
// of any other request, the proxy subresource of services among them, is none of our business.
func isGuarded(method string, info *request.RequestInfo, served ResourceChecker) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if !info.IsResourceRequest || info.Verb == "deletecollection" {
		return false
	}
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if !viewResources[gr] || (info.Subresource != "" && info.Subresource != "status") {
		return false
	}
	return served == nil || served.Serves(gr)
}

// guardWrite reads the body of a guarded request and gives it back to r for sending, or returns the Status that refuses
// the request. Upstream must not see a revision of the view: it would compare it with its own, and answer with a conflict
// that no retry resolves.
func guardWrite(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, nodeName string, timeout time.Duration) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return newUnsupportedMediaType(fmt.Sprintf("the body of a write to %s must not be encoded as %q", info.Resource, encoding))
	}
	body, err := readBody(w, r, timeout)
	if err != nil {
		return err
	}
	found, err := carriesViewRevision(r.Header.Get("Content-Type"), body)
	if err != nil {
		return newUnsupportedMediaType(fmt.Sprintf("the body of a write to %s cannot be inspected as %q; use JSON, YAML or protobuf",
			info.Resource, r.Header.Get("Content-Type")))
	}
	if found {
		return newStatusError(http.StatusNotImplemented, "NotImplemented", fmt.Sprintf(
			"the resourceVersion in this request belongs to the view of node %q and means nothing to the upstream API server; "+
				"send the write without a resourceVersion, or send it to the upstream API server", nodeName))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// readBody reads a body of at most maxGuardedBody bytes. The client has as long for it as for the whole request.
func readBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) ([]byte, error) {
	// Not every writer has deadlines; without one the client's connection bounds the wait.
	controller := http.NewResponseController(w)
	if controller.SetReadDeadline(time.Now().Add(timeout)) == nil {
		defer func() { _ = controller.SetReadDeadline(time.Time{}) }()
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxGuardedBody+1))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || len(body) > maxGuardedBody {
		return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxGuardedBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read: %v", err))
	}
	return body, nil
}

// checkWatchRevision refuses a proxied watch that asks for changes after a revision of the view. Upstream would take it
// for a revision of its own that is still to come, answer 200, and stay silent.
func checkWatchRevision(r *http.Request, info *request.RequestInfo) error {
	if info.Verb != "watch" {
		return nil
	}
	for _, value := range r.URL.Query()["resourceVersion"] {
		if isViewRevision(value) {
			return apierrors.NewResourceExpired(fmt.Sprintf(
				"resourceVersion %s belongs to the view of a node, not to %s on the upstream API server; list again", value, info.Resource))
		}
	}
	return nil
}
