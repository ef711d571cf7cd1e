// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// parallelKinds is how many kinds are emptied at the same time. A kind costs a
// LIST at least; with a few at once an empty namespace is done in little more
// than one of them.
const parallelKinds = 8

// podsResource goes first: what pods use (secrets, configmaps, service
// accounts) stays until they have ended.
var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// empty deletes what is in the namespace and says what is left.
func (c *Controller) empty(ctx context.Context, namespace *corev1.Namespace) findings {
	found := findings{}
	lists, err := c.discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil {
		found.discovery = err
	}
	resources, err := deletable(lists)
	if err != nil {
		found.parsing = err
	}
	found.resources = resources
	if len(resources) == 0 && found.discovery == nil {
		// No server has no kinds: to believe that would be to drop the content.
		found.discovery = fmt.Errorf("no resource with the verb delete was discovered")
	}

	var others []resource
	for _, r := range resources {
		if r.GroupVersionResource != podsResource {
			others = append(others, r)
			continue
		}
		found.add(c.emptyPods(ctx, namespace, r))
		if found.left() {
			return found
		}
	}
	results := make([]result, len(others))
	group := errgroup.Group{}
	group.SetLimit(parallelKinds)
	for i, r := range others {
		group.Go(func() error {
			results[i] = c.emptyResource(ctx, namespace.Name, r, metav1.DeleteOptions{}, 0)
			return nil
		})
	}
	_ = group.Wait() // errors are in the results
	for _, result := range results {
		found.add(result)
	}
	return found
}

// stillEmpty looks once more for content. An object may have been admitted
// before the namespace was terminating and stored after its kind was found empty.
func (c *Controller) stillEmpty(ctx context.Context, namespace string, resources []resource) (bool, error) {
	var content atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelKinds)
	for _, r := range resources {
		if !r.list {
			continue
		}
		group.Go(func() error {
			objects, err := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err = ignoreUnsupported(err); err != nil {
				return fmt.Errorf("looking for late %s in namespace %s: %w", r.GroupResource(), namespace, err)
			}
			if objects != nil && len(objects.Items) > 0 {
				content.Store(true)
			}
			return nil
		})
	}
	err := group.Wait()
	return !content.Load(), err
}

func (c *Controller) emptyPods(ctx context.Context, namespace *corev1.Namespace, r resource) result {
	grace := c.options.PodGracePeriodSeconds
	estimate := time.Duration(ptr.Deref(grace, 0)) * time.Second
	if grace == nil {
		pods, err := c.client.Pods(namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return result{resource: r, err: fmt.Errorf("reading the grace periods of pods: %w", err)}
		}
		estimate = longestGrace(pods.Items)
	}
	if c.clock.Since(namespace.DeletionTimestamp.Time) >= estimate {
		estimate = 0
	}
	return c.emptyResource(ctx, namespace.Name, r, metav1.DeleteOptions{GracePeriodSeconds: grace}, estimate)
}

// longestGrace returns how long the pods may take to end.
func longestGrace(pods []corev1.Pod) time.Duration {
	longest := int64(0)
	for i := range pods {
		switch pods[i].Status.Phase {
		case corev1.PodSucceeded, corev1.PodFailed:
		default:
			longest = max(longest, ptr.Deref(pods[i].Spec.TerminationGracePeriodSeconds, 0))
		}
	}
	return time.Duration(longest) * time.Second
}

// emptyResource deletes all objects of one kind. An estimate above zero says
// that they may take a while to go.
func (c *Controller) emptyResource(ctx context.Context, namespace string, r resource, options metav1.DeleteOptions, estimate time.Duration) result {
	// Dependents are content too and are deleted as such: nobody shall wait for
	// them or make orphans.
	options.PropagationPolicy = ptr.To(metav1.DeletePropagationBackground)
	client := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace)
	if !r.list {
		// Nothing can be seen, so there is nothing to wait for.
		if !r.deleteCollection {
			return result{resource: r}
		}
		return result{resource: r, err: ignoreUnsupported(client.DeleteCollection(ctx, options, metav1.ListOptions{}))}
	}
	objects, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return result{resource: r, err: ignoreUnsupported(err)}
	}
	if len(objects.Items) == 0 {
		return result{resource: r}
	}

	unsupported := !r.deleteCollection
	if !unsupported {
		err = client.DeleteCollection(ctx, options, metav1.ListOptions{})
		unsupported = apierrors.IsMethodNotSupported(err)
	}
	if unsupported {
		err = nil
		for i := range objects.Items {
			err = client.Delete(ctx, objects.Items[i].Name, options)
			if err = ignoreUnsupported(err); err != nil {
				break
			}
		}
	}
	if err = ignoreUnsupported(err); err != nil {
		return result{resource: r, err: fmt.Errorf("deleting %s: %w", r.GroupResource(), err)}
	}
	objects, err = client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return result{resource: r, err: ignoreUnsupported(err)}
	}
	return remaining(namespace, r, objects.Items, estimate)
}

// remaining judges the objects that are there after their deletion.
func remaining(namespace string, r resource, objects []metav1.PartialObjectMetadata, estimate time.Duration) result {
	left := result{resource: r, count: len(objects), finalizers: map[string]int{}}
	for i := range objects {
		for _, finalizer := range objects[i].Finalizers {
			left.finalizers[finalizer]++
		}
	}
	if left.count > 0 && len(left.finalizers) == 0 && estimate == 0 {
		left.err = fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", namespace, r.GroupVersionResource)
	}
	return left
}

// ignoreUnsupported drops the errors that mean that there is nothing to delete:
// the kind or the object went away, or the kind cannot be used like that.
func ignoreUnsupported(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}

// resource is a kind of content, with what can be done to it.
type resource struct {
	schema.GroupVersionResource
	list, deleteCollection bool
}
