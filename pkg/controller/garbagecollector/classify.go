// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNamespacedOwner is for references that no retry can make right.
var errNamespacedOwner = errors.New("a cluster-scoped object cannot have a namespaced owner")

// unknownKindError is for references to a kind that the server does not have.
type unknownKindError struct{ apiVersion, kind string }

func (e *unknownKindError) Error() string {
	return fmt.Sprintf("the server has no kind %s of %s", e.kind, e.apiVersion)
}

// owners are the references of an object, by what has become of the owner.
type owners struct {
	solid    []metav1.OwnerReference // it is there
	dangling []metav1.OwnerReference // it is not
	waiting  []metav1.OwnerReference // it is held until its dependents are gone
	// observed: the solid ones are in the graph, so that their end will be heard.
	observed bool
}

// classify looks the owners up.
func (c *Collector) classify(ctx context.Context, n *node, references []metav1.OwnerReference) (owners, error) {
	found := owners{observed: true}
	for _, reference := range references {
		object, err := c.lookUp(ctx, n, reference)
		switch {
		case err != nil:
			return owners{}, err
		case object == nil:
			found.dangling = append(found.dangling, reference)
		case object.DeletionTimestamp != nil && slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents):
			found.waiting = append(found.waiting, reference)
		default:
			found.solid = append(found.solid, reference)
			found.observed = found.observed && c.graph.has(reference.UID)
		}
	}
	return found, nil
}

// lookUp returns the owner that a reference of the node means, or nil if there
// is none.
func (c *Collector) lookUp(ctx context.Context, n *node, reference metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	clustered, namespaced := owner(reference, ""), owner(reference, n.namespace)
	for _, id := range []identity{clustered, namespaced} {
		if _, absent := c.absent.Get(id); absent {
			return nil, nil //nolint:nilnil // documented
		}
	}
	kind, ok := c.monitors.kind(reference.APIVersion, reference.Kind)
	switch {
	case !ok:
		return nil, &unknownKindError{apiVersion: reference.APIVersion, kind: reference.Kind}
	case kind.namespaced && n.namespace == "":
		return nil, errNamespacedOwner
	}
	id := clustered
	if kind.namespaced {
		id = namespaced
	}
	object, err := c.client.Resource(kind.resource).Namespace(id.namespace).Get(ctx, id.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading the owner %s of %s: %w", id, n, err)
	case object.UID == id.uid:
		return object, nil
	}
	c.absent.Add(id, nil)
	return nil, nil //nolint:nilnil // documented
}

// sameOwner compares what two references mean.
func sameOwner(a metav1.OwnerReference) func(metav1.OwnerReference) bool {
	return func(b metav1.OwnerReference) bool { return owner(a, "") == owner(b, "") }
}
