// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
)

const (
	// followTimeout is how long an answer to a write waits for the view to come to it. The event is on its way when upstream
	// answers, over a link that is no slower than that of the answer; what takes longer is a watch that is broken.
	followTimeout = time.Second
	// maxFollowedAnswer is the size up to which an answer is looked at. It holds the object that was written, which may have
	// grown by defaults and managedFields.
	maxFollowedAnswer = 2 * maxGuardedBody
	// answerBudget is for the answers in memory at a time. What finds no room goes to the client as upstream sends it.
	answerBudget = 16 * 1024 * 1024
)

// follower makes the answer to a write fit what the client reads here afterwards. Safe for concurrent use.
type follower struct {
	view    View
	answers *byteBudget
}

func newFollower(view View) *follower {
	return &follower{view: view, answers: newByteBudget(answerBudget)}
}

// follow waits until the view has come to what upstream says in the answer to a write, and gives the object in it the
// revision that it has in the view. An answer that the view does not come to in time, or in which the view shows something
// else, keeps upstream's revision: as a precondition it means what it says, and a watch from it is told to list again.
// A write that upstream refused because of something that the view does not know of yet is followed too, or the client
// would read what it has read before, and fail again.
//
// The error is one of reading the answer. Nothing else may fail a write that upstream has carried out.
func (f *follower) follow(ctx context.Context, w *write, response *http.Response) error {
	if f.view == nil {
		return nil
	}
	if w.stale != "" && (response.StatusCode == http.StatusConflict || response.StatusCode == http.StatusUnprocessableEntity) {
		// Upstream has found out that the client may make this write. The next attempt is to find what upstream has.
		f.view.Refresh(w.gr, w.namespace, w.name, w.stale, "")
	}
	if !w.isFollowed(response) {
		return nil
	}
	data, whole, err := f.read(response)
	if err != nil || !whole {
		if err == nil {
			klog.FromContext(ctx).V(2).Info("The answer to a write finds no room, it passes with upstream's revision",
				"resource", w.gr.Resource, "object", klog.KRef(w.namespace, w.name))
		}
		return err
	}
	if response.StatusCode == http.StatusConflict && !isStale(w, data) {
		return nil
	}
	contentType := response.Header.Get("Content-Type")
	answer, ok := body.ReadAnswer(contentType, data)
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	revision := f.await(bounded, w, response.StatusCode, answer)
	if errors.Is(bounded.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		klog.FromContext(ctx).Info("The view has not come to a write in time, answering all the same",
			"resource", w.gr.Resource, "object", klog.KRef(answer.Namespace, answer.Name), "code", response.StatusCode)
	}
	if revision == "" {
		return nil
	}
	edited, ok := body.TranslateAnswer(contentType, data, func(upstream string) (string, bool) {
		return revision, upstream == answer.ResourceVersion
	})
	if ok {
		setBody(response, edited)
	}
	return nil
}

// isFollowed reports whether the answer tells something that the view may not know of yet.
func (w *write) isFollowed(response *http.Response) bool {
	if response.Header.Get("Content-Encoding") != "" {
		return false // it was not asked for
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted:
		return true
	case http.StatusConflict:
		return w.sent != "" || w.method == http.MethodPost
	case http.StatusNotFound:
		return w.name != ""
	}
	return false
}

// isStale reports whether a conflict is about a revision, or about an object that is there already: the view may lag behind.
// Conflicts between managers of fields and about a uid are not.
func isStale(w *write, status []byte) bool {
	reasons := []string{"object has been modified", "ResourceVersion in precondition", "ResourceVersion in the precondition"}
	if w.method == http.MethodPost {
		reasons = []string{string(metav1.StatusReasonAlreadyExists)}
	}
	return slices.ContainsFunc(reasons, func(reason string) bool { return bytes.Contains(status, []byte(reason)) })
}

// await waits for the view, and returns the revision that the object in the answer has there; empty if it keeps its own.
func (f *follower) await(ctx context.Context, w *write, code int, answer body.Answer) string {
	switch {
	case code == http.StatusConflict && w.sent != "":
		f.view.AwaitChange(ctx, w.gr, w.namespace, w.name, w.sent)
	case code == http.StatusConflict:
		if answer.Name != "" {
			f.view.AwaitPresence(ctx, w.gr, w.namespace, answer.Name)
		}
	case code == http.StatusNotFound:
		if answer.Name == w.name { // else it is the API that is not there
			f.view.AwaitEnd(ctx, w.gr, w.namespace, w.name, "")
		}
	case w.method == http.MethodDelete && !w.dryRun:
		return f.awaitDeletion(ctx, w, answer)
	case answer.ResourceVersion != "" && len(answer.Items) <= 1:
		revision := f.viewRevision(ctx, w, answer)
		if w.ends(answer) {
			f.view.AwaitEnd(ctx, w.gr, w.namespace, answer.Name, answer.UID)
		}
		return revision
	}
	return ""
}

// ends reports whether the object in the answer to an update is gone: the update took away the last finalizer.
func (w *write) ends(answer body.Answer) bool {
	// What a table and partial metadata tell of a Namespace is not enough: they lack the finalizers in its spec.
	unseen := w.gr == namespacesResource.GroupResource() && answer.Kind != "Namespace"
	return answer.Ended && answer.Name != "" && !w.dryRun && !unseen
}

// awaitDeletion waits until the view does not show any more what was deleted.
func (f *follower) awaitDeletion(ctx context.Context, w *write, answer body.Answer) string {
	if w.name == "" {
		for _, item := range answer.Items {
			f.view.AwaitAbsence(ctx, w.gr, item.Namespace, item.Name, item.UID)
		}
		return ""
	}
	f.view.AwaitAbsence(ctx, w.gr, w.namespace, w.name, answer.UID)
	if answer.ResourceVersion == "" {
		return ""
	}
	return f.viewRevision(ctx, w, answer)
}

func (f *follower) viewRevision(ctx context.Context, w *write, answer body.Answer) string {
	name := cmp.Or(answer.Name, w.name) // a table may have no objects
	if name == "" {
		return ""
	}
	revision, ok := f.view.ViewRevision(ctx, w.gr, w.namespace, name, answer.ResourceVersion)
	if !w.translated {
		return ""
	}
	// What was written may be all in the metadata that the view does not follow: the ownership of an apply.
	if !ok {
		f.view.Refresh(w.gr, w.namespace, name, "", "")
		return ""
	}
	return f.view.Refresh(w.gr, w.namespace, name, revision, answer.ResourceVersion)
}

// read reads an answer, and puts it back into the response. It reports whether it is whole: one that is too large, or finds
// no room, goes on from where reading stopped.
func (f *follower) read(response *http.Response) (_ []byte, whole bool, err error) {
	reserved := 0
	var data []byte
	for {
		if len(data) == cap(data) {
			size := min(max(firstRead, 2*cap(data)), maxFollowedAnswer)
			if size == cap(data) || !f.answers.reserve(size-cap(data)) {
				rest := response.Body
				response.Body = &reservedBody{
					Reader: io.MultiReader(bytes.NewReader(data), rest), close: rest.Close, free: func() { f.answers.release(reserved) },
				}
				return nil, false, nil
			}
			reserved = size
			grown := make([]byte, len(data), size)
			copy(grown, data)
			data = grown
		}
		n, err := response.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.answers.release(reserved)
			return nil, false, err
		}
	}
	response.Body = &reservedBody{Reader: bytes.NewReader(data), close: response.Body.Close, free: func() { f.answers.release(reserved) }}
	return data, true, nil
}

// setBody replaces a body that was read.
func setBody(response *http.Response, data []byte) {
	if kept, ok := response.Body.(*reservedBody); ok {
		kept.Reader = bytes.NewReader(data)
	}
	response.ContentLength = int64(len(data))
	if response.Header.Get("Content-Length") != "" {
		response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	}
}

// reservedBody gives back what was reserved for it when it is closed.
type reservedBody struct {
	io.Reader
	close func() error
	once  sync.Once
	free  func()
}

// Close implements io.Closer.
func (b *reservedBody) Close() error {
	b.once.Do(b.free)
	return b.close()
}
