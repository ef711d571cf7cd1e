// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apply makes the changes. With track, it notes what the cache has to show
// before the next ones are planned.
func (c *Controller) apply(ctx context.Context, namespace, key string, changes Changes, track bool) error {
	client := c.client.EndpointSlices(namespace)
	for _, slice := range changes.Create {
		created, err := client.Create(ctx, slice, metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // it will not be possible any more
		}
		if err != nil {
			return fmt.Errorf("create an endpointslice for endpoints %s: %w", key, err)
		}
		c.tracker.Update(created)
	}
	for _, slice := range changes.Update {
		updated, err := client.Update(ctx, slice, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update endpointslice %s of endpoints %s: %w", slice.Name, key, err)
		}
		c.tracker.Update(updated)
	}
	var failed []error
	for _, slice := range changes.Delete {
		err := client.Delete(ctx, slice.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("delete endpointslice %s of endpoints %s: %w", slice.Name, key, err))
			continue
		}
		if track {
			c.tracker.ExpectDeletion(slice)
		}
	}
	return errors.Join(failed...)
}

// report sends Events about what cannot be copied, once for each revision of
// the Endpoints. Without Endpoints it forgets the key.
func (c *Controller) report(key string, endpoints *corev1.Endpoints, changes Changes) {
	if !c.shouldReport(key, endpoints, changes) {
		return
	}
	if changes.Invalid > 0 {
		c.recorder.Eventf(endpoints, corev1.EventTypeWarning, "InvalidIPAddress",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", changes.Invalid)
	}
	if changes.Surplus > 0 {
		c.recorder.Eventf(endpoints, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped",
			maxPerSubset, changes.Surplus+changes.Invalid)
	}
}

func (c *Controller) shouldReport(key string, endpoints *corev1.Endpoints, changes Changes) bool {
	c.reportedLock.Lock()
	defer c.reportedLock.Unlock()
	if endpoints == nil || changes.Invalid+changes.Surplus == 0 {
		delete(c.reported, key)
		return false
	}
	if c.reported[key] == endpoints.ResourceVersion {
		return false
	}
	c.reported[key] = endpoints.ResourceVersion
	return true
}
