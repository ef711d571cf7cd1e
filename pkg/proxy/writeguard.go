// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxGuardedBody is the limit of kube-apiserver for the body of a write (MaxRequestBodyBytes of its generic server), so
	// what is refused here would be refused there.
	maxGuardedBody = 3 * 1024 * 1024
	// guardBudget is for the guarded bodies in memory at a time, of known and of unknown tokens each: 16 MiB in all. That is
	// two of the largest, or a thousand of the usual (an EndpointSlice of 20 endpoints has 5 KiB in JSON). While a body grows
	// it is in memory twice, so the true peak is twice this. Without a bound 200 slow writers held 751 MiB.
	guardBudget = 8 * 1024 * 1024
	// firstRead is what is reserved for a body of which nothing has arrived.
	firstRead = 4 * 1024
	// bodyTimeout is for a guarded body to arrive. The client is on this node, as a rule.
	bodyTimeout = 15 * time.Second
	// parserWait is for other bodies in a costly encoding to be parsed, of which there may be as many as fit the budgets.
	parserWait = 2 * time.Second
)

var errParserBusy = errors.New("other bodies are being parsed")

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

// writeGuard reads the bodies of guarded requests and refuses what upstream would misread. It works before anybody knows
// whether the client may write at all, so it holds little for those that upstream has not accepted yet, and nothing for
// long. Safe for concurrent use.
type writeGuard struct {
	nodeName  string
	differ    Differ // may be nil
	timeout   time.Duration
	bodies    budgets
	inspector *inspector
}

func newWriteGuard(cfg HandlerConfig) *writeGuard {
	return &writeGuard{
		nodeName:  cfg.NodeName,
		differ:    cfg.Differ,
		timeout:   min(cfg.RequestTimeout, bodyTimeout),
		bodies:    newBudgets(guardBudget),
		inspector: newInspector(),
	}
}

// check returns the body of a guarded request, for sending, or the Status that refuses the request. Upstream must not see
// the view's copy of an object that differs: it would store it. It must not see a revision of the view either: it would
// compare it with its own, and answer with a conflict that no retry resolves. The body must be closed; there may be none.
func (g *writeGuard) check(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, known bool) (*replayBody, error) {
	contentType := r.Header.Get("Content-Type")
	mediaType := mediaTypeOf(contentType)
	differs := g.differs(r.Method, info)
	if differs && writesWhole(r.Method, mediaType) {
		return nil, newFilteredView(info, g.nodeName)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, newUnsupportedMediaType(fmt.Sprintf("the body of a write to %s must not be encoded as %q", info.Resource, encoding))
	}
	budget := g.bodies.of(known)
	data, err := g.readBody(w, r, budget)
	if err != nil {
		return nil, err
	}
	body := newReadBody(data, func() { budget.release(cap(data)) })
	passed := false
	defer func() {
		if !passed {
			body.close()
		}
	}()
	if differs && touchesFiltered(mediaType, data) {
		return nil, newFilteredView(info, g.nodeName)
	}
	if err := g.checkRevision(r, info, contentType, data); err != nil {
		return nil, err
	}
	passed = true
	return body, nil
}

// differs reports whether a write may carry what the view made of the object.
func (g *writeGuard) differs(method string, info *request.RequestInfo) bool {
	if g.differ == nil || (method != http.MethodPut && method != http.MethodPatch) {
		return false
	}
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if _, ok := filteredKinds[gr]; !ok {
		return false
	}
	return g.differ.Differs(gr, info.Namespace, info.Name)
}

func (g *writeGuard) checkRevision(r *http.Request, info *request.RequestInfo, contentType string, body []byte) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), parserWait, errParserBusy)
	defer cancel()
	found, err := g.inspector.carries(ctx, contentType, body)
	switch {
	case errors.Is(err, errNotInspectable):
		return newUnsupportedMediaType(fmt.Sprintf("the body of a write to %s cannot be inspected as %q; use JSON, YAML or protobuf",
			info.Resource, contentType))
	case err != nil:
		return apierrors.NewTooManyRequests(fmt.Sprintf("too many writes to %s are being inspected; use JSON or protobuf, or try again later",
			info.Resource), retryAfterSeconds)
	case found:
		return newStatusError(http.StatusNotImplemented, "NotImplemented", fmt.Sprintf(
			"the resourceVersion in this request belongs to the view of node %q and means nothing to the upstream API server; "+
				"send the write without a resourceVersion (with kubectl: apply, edit, label, annotate or patch, but not replace or diff), or send it to the upstream API server", g.nodeName))
	}
	return nil
}

// readBody reads a body of at most maxGuardedBody bytes. What it returns is reserved in the budget by its capacity, which
// follows what has arrived: a client that announces much and sends little holds little.
func (g *writeGuard) readBody(w http.ResponseWriter, r *http.Request, budget *byteBudget) (_ []byte, err error) {
	// Not every writer has deadlines; without one the client's connection bounds the wait.
	controller := http.NewResponseController(w)
	if controller.SetReadDeadline(time.Now().Add(g.timeout)) == nil {
		defer func() { _ = controller.SetReadDeadline(time.Time{}) }()
	}
	var body []byte
	defer func() {
		if err != nil {
			budget.release(cap(body))
		}
	}()
	for {
		if len(body) == cap(body) {
			if len(body) > maxGuardedBody {
				return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxGuardedBody))
			}
			// One byte more than is allowed tells the end of the body from one that is too large.
			size := min(max(firstRead, 2*cap(body)), maxGuardedBody+1)
			if !budget.reserve(size - cap(body)) {
				return nil, apierrors.NewTooManyRequests("too many large bodies are being inspected; try again later", retryAfterSeconds)
			}
			grown := make([]byte, len(body), size)
			copy(grown, body)
			body = grown
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && len(body) <= maxGuardedBody:
			return body, nil
		case errors.Is(err, io.EOF), tooLarge:
			return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxGuardedBody))
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, newStatusError(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the body did not arrive in time")
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read: %v", err))
		}
	}
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
