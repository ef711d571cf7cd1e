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
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
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

var (
	errParserBusy = errors.New("other bodies are being parsed")
	// errModified is worded as by kube-apiserver.
	errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")
	// errAnswered: the request has its answer.
	errAnswered = errors.New("the request was answered")
)

// writeGuard reads the bodies of writes, translates the revisions in them, and refuses what upstream would misread. It works
// before anybody knows whether the client may write at all, so it holds little for those that upstream has not accepted yet,
// and nothing for long. Safe for concurrent use.
type writeGuard struct {
	nodeName string
	upstream string                                        // where to write what is refused here
	view     View                                          // may be nil
	permit   func(http.ResponseWriter, *http.Request) bool // may be nil
	timeout  time.Duration
	bodies   budgets
	// Each parses one body of a costly encoding at a time: of known and of unknown tokens.
	editors [2]*body.Editor
}

func newWriteGuard(cfg HandlerConfig) *writeGuard {
	return &writeGuard{
		nodeName: cfg.NodeName,
		upstream: cfg.Upstream.Host,
		view:     cfg.View,
		permit:   cfg.Permit,
		timeout:  min(cfg.RequestTimeout, bodyTimeout),
		bodies:   newBudgets(guardBudget),
		editors:  [2]*body.Editor{body.NewEditor(), body.NewEditor()},
	}
}

// check returns the body of a write, for sending, or the Status that refuses the write. Upstream must not see the view's
// copy of an object that differs: it would store it. A revision of the view becomes the one that it stands for. One that
// stands for none goes as it is: upstream, which compares revisions for equality, finds that the object has changed, after
// it has found out whether the client may know. The body must be closed; there may be none.
func (g *writeGuard) check(rw http.ResponseWriter, r *http.Request, w *write, known bool) (*replayBody, error) {
	contentType := r.Header.Get("Content-Type")
	encoding := r.Header.Get("Content-Encoding")
	encoded := encoding != "" && encoding != "identity"
	whole := w.replaces(contentType)
	carries := Carries{Endpoints: whole, Metadata: whole}
	if w.mayTruncate() && (whole || encoded) {
		if err := g.checkDiffers(rw, r, w); err != nil {
			return nil, err
		}
	}
	// Nobody upstream reads an encoded body either.
	if encoded || !hasBody(r) {
		return nil, nil
	}
	budget := g.bodies.of(known)
	data, err := g.readBody(rw, r, budget)
	if err != nil {
		return nil, err
	}
	reserved := cap(data)
	passed := false
	defer func() {
		if !passed {
			budget.release(reserved)
		}
	}()
	if w.mayTruncate() && (whole || body.PatchTouches(contentType, data, filteredFields)) {
		// Also once more: it may have come to differ while the body arrived.
		carries.Endpoints = true
		if err := g.checkDiffers(rw, r, w); err != nil {
			return nil, err
		}
	}
	if w.method == http.MethodDelete && len(data) > 0 {
		w.dryRun = body.IsDryRun(contentType, data) // kube-apiserver looks at the query only if there is no body
	}
	carries.Metadata = carries.Metadata || w.translated && body.PatchTouches(contentType, data, uncomparedFields)
	if data, err = g.translate(rw, r, w, data, carries, known); err != nil {
		return nil, err
	}
	passed = true
	return newReadBody(data, func() { budget.release(reserved) }), nil
}

// checkDiffers returns the Status that refuses a write of what is filtered, if it is, or errAnswered if the client may not
// make such a write: it must not hear of what there is, nor have the server follow what it has not followed before.
func (g *writeGuard) checkDiffers(rw http.ResponseWriter, r *http.Request, w *write) error {
	if g.view == nil {
		return nil
	}
	if !g.mayMake(rw, r, w) {
		return errAnswered
	}
	differs, err := g.view.Differs(r.Context(), w.gr, w.namespace, w.name)
	if err == nil && differs {
		err = newFilteredView(w, g.nodeName, g.upstream)
	}
	return err
}

// mayMake reports whether the client may make the write, and answers it if not.
func (g *writeGuard) mayMake(rw http.ResponseWriter, r *http.Request, w *write) bool {
	if g.permit != nil && !w.permitted {
		w.permitted = g.permit(&refusal{ResponseWriter: rw, request: r}, r)
		return w.permitted
	}
	return true
}

// refusal is the writer of an answer that comes before the body was read.
type refusal struct {
	http.ResponseWriter
	request *http.Request
}

// WriteHeader implements http.ResponseWriter.
func (w *refusal) WriteHeader(code int) {
	closeAfterError(w.ResponseWriter, w.request)
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *refusal) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// translate gives the preconditions in a body the revisions of upstream. A translated body is about as large as it was, so
// what is reserved for the original will do.
func (g *writeGuard) translate(rw http.ResponseWriter, r *http.Request, w *write, data []byte, carries Carries, known bool) ([]byte, error) {
	if g.view == nil || w.name == "" {
		return data, nil
	}
	contentType := r.Header.Get("Content-Type")
	if !w.translated {
		w.sent = body.Precondition(contentType, data)
		return data, nil
	}
	editor := g.editors[0]
	if known {
		editor = g.editors[1]
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), parserWait, errParserBusy)
	defer cancel()
	translated, err := editor.Translate(ctx, contentType, data, func(revision string) (string, bool) {
		upstream, ok := g.view.UpstreamRevision(w.gr, w.namespace, w.name, revision, carries)
		if ok {
			w.sent = upstream
		} else {
			w.stale = revision
		}
		return upstream, ok
	})
	switch {
	case w.stale != "" && w.mayTruncate() && w.replaces(contentType):
		// Upstream looks at no revision when it creates what is not there, from a copy that may have been filtered. A patch
		// creates nothing, and upstream knows how its kind is told of a conflict. That the client may write was found out
		// with what differs.
		g.view.Refresh(w.gr, w.namespace, w.name, w.stale, "")
		return nil, apierrors.NewConflict(w.gr, w.name, errModified)
	case errors.Is(err, body.ErrNotEditable):
		if !g.mayMake(rw, r, w) {
			return nil, errAnswered
		}
		return nil, newUnsupportedMediaType(fmt.Sprintf(
			"the resourceVersion in this write to %s belongs to the view of node %q and cannot be translated for the upstream API server in %q; use JSON",
			w.gr.Resource, g.nodeName, contentType))
	case err != nil:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("too many writes to %s are being inspected; use JSON or protobuf, or try again later",
			w.gr.Resource), retryAfterSeconds)
	case w.sent == "" && w.stale == "":
		w.sent = body.Precondition(contentType, translated)
	}
	return translated, nil
}

// readBody reads a body of at most maxGuardedBody bytes. What it returns is reserved in the budget by its capacity, which
// follows what has arrived: a client that announces much and sends little holds little.
func (g *writeGuard) readBody(w http.ResponseWriter, r *http.Request, budget *byteBudget) (_ []byte, err error) {
	if r.ContentLength > maxGuardedBody {
		return nil, newTooLarge()
	}
	// Not every writer has deadlines; without one the client's connection bounds the wait.
	controller := http.NewResponseController(w)
	if controller.SetReadDeadline(time.Now().Add(g.timeout)) == nil {
		defer func() { _ = controller.SetReadDeadline(time.Time{}) }()
	}
	var data []byte
	defer func() {
		if err != nil {
			budget.release(cap(data))
		}
	}()
	for {
		if len(data) == cap(data) {
			if len(data) > maxGuardedBody {
				return nil, newTooLarge()
			}
			// One byte more than is allowed tells the end of the body from one that is too large.
			size := min(max(firstRead, 2*cap(data)), maxGuardedBody+1)
			if !budget.reserve(size - cap(data)) {
				return nil, apierrors.NewTooManyRequests("too many large bodies are being inspected; try again later", retryAfterSeconds)
			}
			grown := make([]byte, len(data), size)
			copy(grown, data)
			data = grown
		}
		n, err := r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && len(data) <= maxGuardedBody:
			return data, nil
		case errors.Is(err, io.EOF), tooLarge:
			return nil, newTooLarge()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, newStatusError(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the body did not arrive in time")
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read: %v", err))
		}
	}
}

// newTooLarge is worded as by kube-apiserver.
func newTooLarge() error {
	return apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxGuardedBody))
}

// checkWatchRevision refuses a proxied watch that asks for changes after a revision of the view. Upstream would take it
// for a revision of its own that is still to come, answer 200, and stay silent.
func checkWatchRevision(r *http.Request, info *request.RequestInfo) error {
	if info.Verb != "watch" {
		return nil
	}
	for _, value := range r.URL.Query()["resourceVersion"] {
		if body.IsViewRevision(value) {
			return apierrors.NewResourceExpired(fmt.Sprintf(
				"resourceVersion %s belongs to the view of a node, not to %s on the upstream API server; list again", value, info.Resource))
		}
	}
	return nil
}
