// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// process does for an object what its state asks for. It reports whether that
// is settled until the next change of the graph.
func (c *Collector) process(ctx context.Context, uid types.UID) (settled bool, err error) {
	n, dependents := c.graph.get(uid)
	switch {
	case n == nil:
		return true, nil
	case n.orphaning:
		return true, c.orphan(ctx, n, dependents)
	case n.foreground:
		return true, c.hold(ctx, n, dependents)
	case n.deleting || len(n.owners) == 0:
		return true, nil
	}
	return c.collect(ctx, n, dependents)
}

// orphan takes the references to the node out of its dependents, and then lets
// the node go. The dependents are listed: one that the graph has not seen yet
// would lose its owner and be deleted.
func (c *Collector) orphan(ctx context.Context, n *node, observed []*node) error {
	dependents, err := c.dependents(ctx, n, observed)
	if err != nil {
		return err
	}
	var errs []error
	for _, dependent := range dependents {
		errs = append(errs, c.dropReferences(ctx, dependent, func(r metav1.OwnerReference) bool { return r.UID == n.uid }))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("orphaning the dependents of %s: %w", n, err)
	}
	klog.FromContext(ctx).V(2).Info("Orphaned the dependents of an object", "object", n.identity, "dependents", len(dependents))
	return c.dropFinalizer(ctx, n, metav1.FinalizerOrphanDependents)
}

// dependents lists what refers to the node, in all kinds that are followed. For
// a kind that cannot be listed those that were observed have to do: it may stay
// broken for ever, and most owners have no dependents of it.
func (c *Collector) dependents(ctx context.Context, n *node, observed []*node) ([]*node, error) {
	var dependents []*node
	for resource, gvk := range c.monitors.followed() {
		if k, ok := c.monitors.kind(gvk.GroupVersion().String(), gvk.Kind); ok && n.namespace != "" && !k.namespaced {
			continue
		}
		list, err := c.client.Resource(resource).Namespace(n.namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
			continue // the kind went away
		case ctx.Err() != nil:
			return nil, fmt.Errorf("listing %s for dependents of %s: %w", resource.GroupResource(), n, ctx.Err())
		case err != nil:
			klog.FromContext(ctx).Error(err, "A kind cannot be listed, only the dependents of it that were observed are orphaned",
				"resource", resource, "object", n.identity)
			dependents = append(dependents, ofKind(observed, resource, n.namespace)...)
			continue
		}
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == n.uid }) {
				dependents = append(dependents, newNode(resource, gvk, &list.Items[i]))
			}
		}
	}
	return dependents, nil
}

// ofKind returns the nodes of a kind in a namespace, or in all if it is empty.
// The kind may be followed in another version since the nodes were observed.
func ofKind(nodes []*node, resource schema.GroupVersionResource, namespace string) []*node {
	var found []*node
	for _, n := range nodes {
		if n.resource.GroupResource() == resource.GroupResource() && (namespace == "" || n.namespace == namespace) {
			found = append(found, n)
		}
	}
	return found
}

// hold lets the node go when nothing blocks it any more. Its dependents were
// queued with it; those that come later or were set back are queued here.
func (c *Collector) hold(ctx context.Context, n *node, dependents []*node) error {
	blocked := false
	for _, dependent := range dependents {
		if !dependent.blocks(n) {
			continue
		}
		blocked = true
		if !dependent.deleting {
			c.queue.Add(dependent.uid)
		}
	}
	if blocked {
		return nil
	}
	return c.dropFinalizer(ctx, n, metav1.FinalizerDeleteDependents)
}

// collect deletes the node if it has lost all its owners.
func (c *Collector) collect(ctx context.Context, n *node, dependents []*node) (settled bool, err error) {
	logger := klog.FromContext(ctx)
	latest, err := c.read(ctx, n)
	if err != nil || latest == nil {
		return true, err
	}
	if len(latest.OwnerReferences) == 0 {
		return true, nil
	}
	found, err := c.classify(ctx, n, latest.OwnerReferences)
	switch {
	case errors.Is(err, errNamespacedOwner):
		logger.V(2).Info("A cluster-scoped object refers to a namespaced owner", "object", n.identity)
		return true, nil
	case err != nil:
		return false, err
	}

	switch {
	case len(found.solid) > 0:
		gone := append(found.dangling, found.waiting...)
		if len(gone) > 0 {
			// A reference to an owner that waits would hold it for ever.
			err = c.dropReferences(ctx, n, func(r metav1.OwnerReference) bool { return slices.ContainsFunc(gone, sameOwner(r)) })
		}
		return found.observed, err
	case len(found.waiting) > 0 && len(dependents) > 0:
		if slices.ContainsFunc(dependents, func(d *node) bool { return d.foreground }) {
			// A dependent that waits itself may wait for this one in the end.
			if err := c.unblock(ctx, n); err != nil {
				return false, err
			}
			if latest, err = c.read(ctx, n); err != nil || latest == nil {
				return true, err
			}
		}
		return true, c.delete(ctx, n, latest, metav1.DeletePropagationForeground)
	case slices.Contains(latest.Finalizers, metav1.FinalizerOrphanDependents):
		return true, c.delete(ctx, n, latest, metav1.DeletePropagationOrphan)
	case slices.Contains(latest.Finalizers, metav1.FinalizerDeleteDependents):
		return true, c.delete(ctx, n, latest, metav1.DeletePropagationForeground)
	default:
		return true, c.delete(ctx, n, latest, metav1.DeletePropagationBackground)
	}
}

func (c *Collector) resource(n *node) metadata.ResourceInterface {
	return c.client.Resource(n.resource).Namespace(n.namespace)
}

// read returns the object as it is now, or nil if it is gone: the graph will
// hear of that.
func (c *Collector) read(ctx context.Context, n *node) (*metav1.PartialObjectMetadata, error) {
	latest, err := c.resource(n).Get(ctx, n.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", n, err)
	case latest.UID != n.uid:
		return nil, nil //nolint:nilnil // documented
	}
	return latest, nil
}

// delete deletes the object if its owners are still those that were judged.
func (c *Collector) delete(ctx context.Context, n *node, judged *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) error {
	klog.FromContext(ctx).V(2).Info("Deleting an object without owners", "object", n.identity, "propagationPolicy", policy)
	options := metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &n.uid, ResourceVersion: ptr.To(judged.ResourceVersion)},
	}
	err := c.resource(n).Delete(ctx, n.name, options)
	if apierrors.IsConflict(err) {
		latest, readErr := c.read(ctx, n)
		if readErr != nil || latest == nil {
			return readErr
		}
		if equality.Semantic.DeepEqual(latest.OwnerReferences, judged.OwnerReferences) {
			// It is written to by others so often that it would never go.
			options.Preconditions.ResourceVersion = nil
			err = c.resource(n).Delete(ctx, n.name, options)
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", n, err)
	}
	return nil
}
