// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Delete implements rest.GracefulDeleter. The first call marks the namespace
// as terminating, later ones remove it once nothing holds it any more. The
// returned flag says whether the object is gone.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("not a Namespace: %T", obj))
	}
	options, err = pinned(options, namespace)
	if err != nil {
		return nil, false, err
	}
	switch {
	case namespace.DeletionTimestamp.IsZero():
		marked, err := r.mark(ctx, name, validate, options)
		return marked, false, err
	case len(namespace.Spec.Finalizers) != 0:
		return namespace, false, nil
	default:
		return r.store.Delete(ctx, name, validate, options)
	}
}

// pinned returns options that hold for this namespace alone, not for another
// one that takes its name in the meantime, or a conflict.
func pinned(options *metav1.DeleteOptions, namespace *corev1.Namespace) (*metav1.DeleteOptions, error) {
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	conditions := options.Preconditions
	if conditions.UID == nil {
		conditions.UID = &namespace.UID
	}
	if *conditions.UID != namespace.UID {
		return nil, conflict(namespace.Name, "UID", string(*conditions.UID), string(namespace.UID))
	}
	if conditions.ResourceVersion != nil && *conditions.ResourceVersion != namespace.ResourceVersion {
		return nil, conflict(namespace.Name, "ResourceVersion", *conditions.ResourceVersion, namespace.ResourceVersion)
	}
	return options, nil
}

// conflict words a failed precondition as the generic store does, because
// clients compare these texts.
func conflict(name, field, wanted, found string) error {
	return apierrors.NewConflict(corev1.Resource("namespaces"), name,
		fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", field, wanted, field, found)) //nolint:revive,staticcheck // the text of the API
}

func (r *REST) mark(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, error) {
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	marked := r.store.NewFunc()
	err = r.store.Storage.GuaranteedUpdate(ctx, key, marked, false,
		&storage.Preconditions{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion},
		storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
			namespace, ok := existing.(*corev1.Namespace)
			if !ok {
				return nil, fmt.Errorf("not a Namespace: %T", existing)
			}
			if validate != nil {
				if err := validate(ctx, namespace); err != nil {
					return nil, err
				}
			}
			if namespace.DeletionTimestamp.IsZero() {
				now := metav1.Now()
				namespace.DeletionTimestamp = &now
			}
			namespace.Status.Phase = corev1.NamespaceTerminating
			namespace.Finalizers = propagationFinalizers(namespace.Finalizers, options)
			return namespace, nil
		}),
		dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		resource := corev1.Resource("namespaces")
		err = storageerr.InterpretUpdateError(storageerr.InterpretGetError(err, resource, name), resource, name)
		if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			err = apierrors.NewInternalError(err)
		}
		return nil, err
	}
	return marked, nil
}

// propagationFinalizers returns the finalizers of an object that is deleted
// with these options: what the garbage collector looks for. Others are kept.
func propagationFinalizers(finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := map[string]bool{
		metav1.FinalizerOrphanDependents: slices.Contains(finalizers, metav1.FinalizerOrphanDependents),
		metav1.FinalizerDeleteDependents: slices.Contains(finalizers, metav1.FinalizerDeleteDependents),
	}
	switch {
	case options.OrphanDependents != nil: //nolint:staticcheck // deprecated, and still what old clients send
		orphan := *options.OrphanDependents //nolint:staticcheck // as above
		wanted[metav1.FinalizerOrphanDependents] = orphan
		wanted[metav1.FinalizerDeleteDependents] = !orphan
	case options.PropagationPolicy != nil:
		wanted[metav1.FinalizerOrphanDependents] = *options.PropagationPolicy == metav1.DeletePropagationOrphan
		wanted[metav1.FinalizerDeleteDependents] = *options.PropagationPolicy == metav1.DeletePropagationForeground
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool {
		keep, known := wanted[finalizer]
		return known && !keep
	})
	for _, finalizer := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if wanted[finalizer] && !slices.Contains(kept, finalizer) {
			kept = append(kept, finalizer)
		}
	}
	return kept
}
