// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// edit changes the metadata of an object. change returns the fields that differ,
// or nil if nothing has to be written. A merge patch works for every kind, custom
// ones included; the resourceVersion in it makes it safe for whole lists. An
// object that is gone needs no change.
func (c *Collector) edit(ctx context.Context, n *node, change func(*metav1.PartialObjectMetadata) map[string]any) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := c.read(ctx, n)
		if err != nil || latest == nil {
			return err
		}
		fields := change(latest)
		if fields == nil {
			return nil
		}
		fields["resourceVersion"] = latest.ResourceVersion
		patch, err := json.Marshal(map[string]any{"metadata": fields})
		if err != nil {
			return fmt.Errorf("encoding a patch of %s: %w", n, err)
		}
		_, err = c.resource(n).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (c *Collector) dropFinalizer(ctx context.Context, n *node, finalizer string) error {
	err := c.edit(ctx, n, func(object *metav1.PartialObjectMetadata) map[string]any {
		if !slices.Contains(object.Finalizers, finalizer) {
			return nil
		}
		left := slices.DeleteFunc(object.Finalizers, func(f string) bool { return f == finalizer })
		return map[string]any{"finalizers": left}
	})
	if err != nil {
		return fmt.Errorf("removing the finalizer %s of %s: %w", finalizer, n, err)
	}
	return nil
}

func (c *Collector) dropReferences(ctx context.Context, n *node, drop func(metav1.OwnerReference) bool) error {
	err := c.edit(ctx, n, func(object *metav1.PartialObjectMetadata) map[string]any {
		if !slices.ContainsFunc(object.OwnerReferences, drop) {
			return nil
		}
		return map[string]any{"ownerReferences": slices.DeleteFunc(object.OwnerReferences, drop)}
	})
	if err != nil {
		return fmt.Errorf("removing owner references of %s: %w", n, err)
	}
	return nil
}

// unblock lets the owners of the node go before it.
func (c *Collector) unblock(ctx context.Context, n *node) error {
	err := c.edit(ctx, n, func(object *metav1.PartialObjectMetadata) map[string]any {
		changed := false
		for i := range object.OwnerReferences {
			if ptr.Deref(object.OwnerReferences[i].BlockOwnerDeletion, false) {
				object.OwnerReferences[i].BlockOwnerDeletion = ptr.To(false)
				changed = true
			}
		}
		if !changed {
			return nil
		}
		return map[string]any{"ownerReferences": object.OwnerReferences}
	})
	if err != nil {
		return fmt.Errorf("unblocking the owners of %s: %w", n, err)
	}
	return nil
}
