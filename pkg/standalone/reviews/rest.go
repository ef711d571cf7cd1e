// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// restStorage answers the creation of a T with what review makes of it. T is a pointer.
type restStorage[T runtime.Object] struct {
	singular   string
	namespaced bool
	newFunc    func() T
	// review fills in the status. The object is its own.
	review func(ctx context.Context, object T) error
}

func newREST[T runtime.Object](singular string, namespaced bool, newFunc func() T, review func(context.Context, T) error) rest.Storage {
	return &restStorage[T]{singular: singular, namespaced: namespaced, newFunc: newFunc, review: review}
}

var (
	_ rest.Storage              = &restStorage[*metav1.Status]{}
	_ rest.Creater              = &restStorage[*metav1.Status]{}
	_ rest.Scoper               = &restStorage[*metav1.Status]{}
	_ rest.SingularNameProvider = &restStorage[*metav1.Status]{}
)

// New implements rest.Storage.
func (r *restStorage[T]) New() runtime.Object { return r.newFunc() }

// Destroy implements rest.Storage.
func (*restStorage[T]) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *restStorage[T]) NamespaceScoped() bool { return r.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r *restStorage[T]) GetSingularName() string { return r.singular }

// Create answers a review. A dry run is answered like any other: nothing is kept.
func (r *restStorage[T]) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := object.(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %s: %T", r.singular, object))
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.review(ctx, review); err != nil {
		return nil, err
	}
	return review, nil
}
