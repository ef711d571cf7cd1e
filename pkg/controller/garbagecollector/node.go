// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// identity says which object is meant, as an object knows itself or as a
// dependent knows its owner.
type identity struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

// String is the text of logs and events.
func (i identity) String() string {
	return fmt.Sprintf("[%s/%s, namespace: %s, name: %s, uid: %s]", i.apiVersion, i.kind, i.namespace, i.name, i.uid)
}

func (i identity) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: i.apiVersion, Kind: i.kind, Namespace: i.namespace, Name: i.name, UID: i.uid}
}

// owner is the identity that a reference in the namespace speaks of.
func owner(reference metav1.OwnerReference, namespace string) identity {
	return identity{apiVersion: reference.APIVersion, kind: reference.Kind, namespace: namespace, name: reference.Name, uid: reference.UID}
}

// node is what the graph knows of an object. It does not change: another state
// of the object is another node.
type node struct {
	identity
	resource schema.GroupVersionResource
	owners   []metav1.OwnerReference
	// deleting: it has a deletionTimestamp. With it, foreground: it is held for
	// its dependents; orphaning: it is held until they are free.
	deleting, foreground, orphaning bool
}

func newNode(resource schema.GroupVersionResource, kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) *node {
	deleting := object.DeletionTimestamp != nil
	return &node{
		identity: identity{
			apiVersion: kind.GroupVersion().String(), kind: kind.Kind,
			namespace: object.Namespace, name: object.Name, uid: object.UID,
		},
		resource: resource,
		// The rest of the object is not kept alive.
		owners:     slices.Clone(object.OwnerReferences),
		deleting:   deleting,
		foreground: deleting && slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents),
		orphaning:  deleting && slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents),
	}
}

// blocks reports whether the node holds up the deletion of its owner. An object
// outside of the owner's namespace is no dependent of it, and one that refers to
// itself must not wait for itself.
func (n *node) blocks(owner *node) bool {
	if n.uid == owner.uid || owner.namespace != "" && owner.namespace != n.namespace {
		return false
	}
	return slices.ContainsFunc(n.owners, func(r metav1.OwnerReference) bool {
		return r.UID == owner.uid && ptr.Deref(r.BlockOwnerDeletion, false)
	})
}

// fit is how a reference of a dependent goes with the owner that has its uid.
type fit int

const (
	fits fit = iota
	// otherNamespace: the owner is namespaced and not where the dependent is.
	otherNamespace
	// otherName: the reference names another object or another version.
	otherName
)

func (n *node) fit(reference metav1.OwnerReference, owner *node) fit {
	switch {
	case owner.namespace != "" && owner.namespace != n.namespace:
		return otherNamespace
	case reference.Name != owner.name || reference.Kind != owner.kind || reference.APIVersion != owner.apiVersion:
		return otherName
	}
	return fits
}
