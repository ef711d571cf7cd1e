// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// corruptLimit is how many corrupt objects a LIST reports before it gives up, the same as with etcd.
const corruptLimit = 100

// corruptError says that what is stored cannot be turned into an object. Administrators may delete such an object unseen.
type corruptError struct{ err error }

func (e *corruptError) Error() string { return e.err.Error() }
func (e *corruptError) Unwrap() error { return e.err }

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*corruptError](err)
	return ok
}

// corruptTransformer marks the errors of reading. It cannot tell broken data from a key service that is away, as
// kube-apiserver cannot; but that the caller went away says nothing about the data.
type corruptTransformer struct{ value.Transformer }

var _ value.Transformer = corruptTransformer{}

// TransformFromStorage implements value.Transformer.
func (t corruptTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	out, stale, err := t.Transformer.TransformFromStorage(ctx, data, dataCtx)
	if err != nil && ctx.Err() == nil {
		err = &corruptError{err}
	}
	return out, stale, err
}

// unsafeDeletion tells whether corrupt objects can be told from other failures and deleted.
func unsafeDeletion() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}

// corruptObject makes an error of reading key the one by which the registry finds out that the object is corrupt.
func corruptObject(key string, err error) error {
	if isCorrupt(err) && unsafeDeletion() {
		return storage.NewCorruptObjError(key, err)
	}
	return err
}

// corruptDeletion makes an error of reading what was deleted the one that tells a watch that the object was corrupt.
func corruptDeletion(err error) error {
	if !isCorrupt(err) || !unsafeDeletion() {
		return err
	}
	return readError(fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err), nil)
}

func readError(message string, details *metav1.StatusDetails) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: message,
		Details: details,
	}}
}

// listErrors are the errors of reading the objects of a LIST. Unless unsafe deletion is enabled the first one ends the
// LIST; if it is, corrupt objects are collected, so that who cleans up sees all of them.
type listErrors struct {
	collect bool
	corrupt []metav1.StatusCause
	ended   error // why the LIST did not go on
}

var errTooManyCorrupt = errors.New("too many errors, the list is truncated")

// add returns whether the LIST goes on.
func (l *listErrors) add(key string, err error) bool {
	if !l.collect || !isCorrupt(err) {
		l.ended = err
		return false
	}
	l.corrupt = append(l.corrupt, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: key, Message: err.Error()})
	if len(l.corrupt) == corruptLimit {
		l.ended = errTooManyCorrupt
	}
	return l.ended == nil
}

// result is the error of the LIST.
func (l *listErrors) result(resource schema.GroupResource) error {
	if len(l.corrupt) == 0 {
		return l.ended
	}
	// The message carries the first error, so it survives where the causes are dropped.
	message := fmt.Sprintf("failed to read one or more %s from the storage: %s", resource, l.corrupt[0].Message)
	if more := len(l.corrupt) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	causes := l.corrupt
	if l.ended != nil {
		cause := metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: l.ended.Error()}
		if errors.Is(l.ended, errTooManyCorrupt) {
			cause.Type = metav1.CauseTypeTooMany
		}
		causes = append(causes, cause)
	}
	return readError(message, &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: "list", Causes: causes})
}
