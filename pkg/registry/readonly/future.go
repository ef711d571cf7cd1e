// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// retrySeconds is the hint in a "too large resource version" error; it is the
// one that the watch cache of k8s.io/apiserver gives for lists.
const retrySeconds = 1

// futureRevision returns a "too large resource version" error when the watch
// would start above the newest revision of the store. The watch cache accepts
// such a watch and stays silent until the counter has passed that revision,
// which loses all changes in between.
//
// It lets a watch with initial events pass: the cache waits for its
// revision and answers the same error by itself. It never refuses a revision
// that was handed out, because the cache is never ahead of its store.
func (r *REST) futureRevision(ctx context.Context, options *metainternalversion.ListOptions) (error, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		return nil, nil
	}
	requested, err := storage.APIObjectVersioner{}.ParseResourceVersion(options.ResourceVersion)
	if err != nil || requested == 0 {
		return nil, nil //nolint:nilerr // the store says what is wrong with it, in the words of kube-apiserver
	}
	current, err := r.store.Storage.Storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the current revision of %s: %w", r.store.DefaultQualifiedResource, err)
	}
	if requested <= current {
		return nil, nil
	}
	return storage.NewTooLargeResourceVersionError(requested, current, retrySeconds), nil
}

// errorWatch is a watch that has failed: one ERROR event, then the end.
//
// An event, not an HTTP status, because that is how the watch cache answers
// 410 and its own "too large", and because client-go repeats a request with
// status 504 and a Retry-After header ten times before it tells its reflector.
type errorWatch struct {
	events chan watch.Event
}

var _ watch.Interface = &errorWatch{}

func newErrorWatch(err error) *errorWatch {
	w := &errorWatch{events: make(chan watch.Event, 1)}
	w.events <- watch.Event{Type: watch.Error, Object: statusOf(err)}
	close(w.events)
	return w
}

// ResultChan implements watch.Interface.
func (w *errorWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface; there is nothing to stop.
func (w *errorWatch) Stop() {}

func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status := api.Status()
		return &status
	}
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: err.Error(),
	}
}
