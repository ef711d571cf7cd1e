// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
)

// copyOf returns the object as it was answered, read or listed: it may be old.
func (w *writer) copyOf(ctx context.Context, k writtenKind, name string) written {
	if held := w.held[k.resource+name]; held != nil && w.random.IntN(3) == 0 {
		return held
	}
	client := k.client(w.client())
	got := k.empty()
	if w.random.IntN(2) == 0 {
		if err := client.Get().Namespace("default").Resource(k.resource).Name(name).Do(ctx).Into(got); err != nil {
			return nil
		}
		return got
	}
	list := k.list()
	if err := client.Get().Namespace("default").Resource(k.resource).Do(ctx).Into(list); err != nil {
		return nil
	}
	var found written
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if item.(written).GetName() == name {
			found = item.(written)
		}
		return nil
	})
	return found
}

// stream sends an update whose body is read from the view while it is under way.
func (w *writer) stream(ctx context.Context, k writtenKind, name, id string, into written) error {
	text, _ := w.view.clients()
	client := k.client(text).(*rest.RESTClient)
	reader, pipe := io.Pipe()
	wait := time.Duration(w.random.IntN(80)) * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		read := k.empty()
		_, _ = pipe.Write([]byte(" "))
		w.pause(wait)
		if err := client.Get().Namespace("default").Resource(k.resource).Name(name).Do(ctx).Into(read); err != nil {
			pipe.CloseWithError(err)
			return
		}
		read.GetObjectKind().SetGroupVersionKind(gvkOf(read))
		annotations := maps.Clone(read.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[id] = ""
		read.SetAnnotations(annotations)
		pipe.CloseWithError(json.NewEncoder(pipe).Encode(read))
	}()
	defer reader.CloseWithError(io.ErrClosedPipe)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, w.view.host()+k.path+"/"+name, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(data, into)
	}
	status := metav1.Status{}
	if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" {
		w.errorf("%d is no Status: %s", response.StatusCode, data)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func (w *writer) note(what, id string, err error) {
	reason := "ok"
	if err != nil {
		reason = string(apierrors.ReasonForError(err))
	}
	w.mu.Lock()
	w.done[what+": "+reason]++
	w.whats[id] = what
	w.mu.Unlock()
}

// checkError accepts what a write may be refused for.
func (w *writer) checkError(what string, kind int, err error, troubles int64) {
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		return
	case apierrors.IsInvalid(err) && kind != 0 && strings.Contains(err.Error(), "filtered view"):
		return
	case apierrors.IsInvalid(err) && strings.HasPrefix(what, "JSON patch"): // the test in it has failed
		return
	case apierrors.IsInvalid(err) && what == "apply of metadata" && strings.Contains(err.Error(), "Required value"):
		return // it has created what was deleted
	case w.calm(troubles):
		w.errorf("%s: %v", what, err)
	}
}

// checkRead looks whether a read after a write shows it, or what came after it.
func (w *writer) checkRead(ctx context.Context, k writtenKind, what, id string, answer written, troubles int64) {
	read := k.empty()
	err := k.client(w.client()).Get().Namespace("default").Resource(k.resource).Name(answer.GetName()).Do(ctx).Into(read)
	if !w.calm(troubles) {
		return
	}
	switch {
	case apierrors.IsNotFound(err): // somebody else has deleted it
		if w.existed(k, answer) {
			w.errorf("%s of %s %s: not found afterwards, though upstream has it", what, k.resource, answer.GetName())
		}
	case err != nil:
		w.errorf("reading after %s: %v", what, err)
	case read.GetUID() == answer.GetUID() && !marksOf(read)[id]:
		w.errorf("%s of %s %s: not shown by a read afterwards (answer %s, read %s)", what, k.resource, answer.GetName(),
			answer.GetResourceVersion(), read.GetResourceVersion())
	case body.IsViewRevision(answer.GetResourceVersion()) && read.GetUID() == answer.GetUID() && read.GetResourceVersion() < answer.GetResourceVersion():
		w.errorf("%s of %s %s: answer %s, read %s", what, k.resource, answer.GetName(), answer.GetResourceVersion(), read.GetResourceVersion())
	}
	if k.resource == "services" && !body.IsViewRevision(answer.GetResourceVersion()) && w.calm(troubles) {
		w.errorf("%s of %s %s: revision %s is upstream's", what, k.resource, answer.GetName(), answer.GetResourceVersion())
	}
}

// existed asks upstream, which may know of a later deletion.
func (w *writer) existed(k writtenKind, object written) bool {
	read := k.empty()
	err := k.client(w.upstream).Get().Namespace("default").Resource(k.resource).Name(object.GetName()).Do(w.ctx).Into(read)
	return err == nil && read.GetUID() == object.GetUID()
}

func (w *writer) checkGone(ctx context.Context, k writtenKind, deleted written, troubles int64) {
	read := k.empty()
	err := k.client(w.client()).Get().Namespace("default").Resource(k.resource).Name(deleted.GetName()).Do(ctx).Into(read)
	if err == nil && read.GetUID() == deleted.GetUID() && w.calm(troubles) {
		w.errorf("%s %s is still shown after it was deleted", k.resource, deleted.GetName())
	}
}

// watchFrom follows what comes after an answer.
func (w *writer) watchFrom(kind int, answer written, troubles int64) {
	w.mu.Lock()
	full := len(w.watches) >= 12
	w.mu.Unlock()
	if full {
		return
	}
	k := writtenKinds[kind]
	events, err := k.client(w.client()).Get().Namespace("default").Resource(k.resource).Param("watch", "true").
		Param("resourceVersion", answer.GetResourceVersion()).Watch(w.ctx)
	if err != nil {
		if w.calm(troubles) {
			w.errorf("watching from an answer: %v", err)
		}
		return
	}
	a := &answerWatch{kind: kind, name: answer.GetName(), uid: answer.GetUID(), marks: marksOf(answer), before: troubles}
	w.mu.Lock()
	w.watches = append(w.watches, a)
	w.mu.Unlock()
	w.watching.Go(func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if object, ok := event.Object.(written); ok && object.GetName() == "the-end" {
				a.ended = true
				return
			}
			a.events = append(a.events, event)
		}
	})
}
