// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// sync does one round for a namespace. It reports whether content is left that
// needs nothing but time.
func (c *Controller) sync(ctx context.Context, name string) (waiting bool, err error) {
	logger := klog.FromContext(ctx)
	// The live object, since the informer may still have one of the same name
	// that is gone already.
	namespace, err := c.client.Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	case namespace.DeletionTimestamp.IsZero() || len(namespace.Spec.Finalizers) == 0:
		return false, nil
	}

	found := c.empty(ctx, namespace)
	if err := c.writeStatus(ctx, namespace, found); err != nil {
		found.other = append(found.other, err)
	}
	if err := errors.Join(found.errors()...); err != nil {
		return false, err
	}
	if len(found.remaining) > 0 {
		logger.V(4).Info("Namespace has content left", "namespace", name, "kinds", len(found.remaining))
		return true, nil
	}
	if !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return false, nil
	}
	empty, err := c.stillEmpty(ctx, name, found.resources)
	switch {
	case err != nil:
		return false, err
	case !empty:
		logger.V(4).Info("Namespace has got content late", "namespace", name)
		return true, nil
	}
	if err := c.finalize(ctx, namespace); err != nil {
		return false, err
	}
	logger.V(2).Info("Namespace is empty", "namespace", name)
	return false, nil
}

// writeStatus stores what the round has found, if that is news. The object is
// the caller's own copy and is updated.
func (c *Controller) writeStatus(ctx context.Context, namespace *corev1.Namespace, found findings) error {
	conditions, changed := mergeConditions(namespace.Status.Conditions, found.conditions(), metav1.NewTime(c.clock.Now()))
	if namespace.Status.Phase == corev1.NamespaceTerminating && !changed {
		return nil
	}
	namespace.Status.Phase = corev1.NamespaceTerminating
	namespace.Status.Conditions = conditions
	written, err := c.client.Namespaces().UpdateStatus(ctx, namespace, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("writing the status of namespace %s: %w", namespace.Name, err)
	}
	*namespace = *written
	return nil
}

// finalize takes our finalizer off. With none left, that removes the object.
func (c *Controller) finalize(ctx context.Context, namespace *corev1.Namespace) error {
	uid := namespace.UID
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
			return nil
		}
		changed := &corev1.Namespace{ObjectMeta: namespace.ObjectMeta}
		changed.Spec.Finalizers = slices.DeleteFunc(slices.Clone(namespace.Spec.Finalizers), func(f corev1.FinalizerName) bool {
			return f == corev1.FinalizerKubernetes
		})
		_, err := c.client.Namespaces().Finalize(ctx, changed, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		latest, getErr := c.client.Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if latest.UID != uid {
			return apierrors.NewNotFound(corev1.Resource("namespaces"), namespace.Name)
		}
		namespace = latest
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalizing namespace %s: %w", namespace.Name, err)
	}
	return nil
}
