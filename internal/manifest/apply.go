// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// establishPoll is short beside the tenth of a second after which a new kind is served here.
	establishPoll = 20 * time.Millisecond
	// establishTimeout is long beside the five seconds that it takes in a cluster
	// of several API servers.
	establishTimeout = 30 * time.Second
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Applier applies objects to one API server. It may be used concurrently.
type Applier struct {
	client  dynamic.Interface
	mapper  meta.ResettableRESTMapper
	manager string
}

// NewApplier returns an Applier that writes as the given field manager.
func NewApplier(config *rest.Config, fieldManager string) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	return &Applier{client: client, mapper: mapper, manager: fieldManager}, nil
}

// Apply writes the objects in their order, each with its status if it has one.
// Objects of a namespaced kind that name no namespace go to the default one.
// After a CustomResourceDefinition it waits until its kind is served. The error
// names the object; those before it are written.
func (a *Applier) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		err := a.apply(ctx, object)
		if err == nil && object.GroupVersionKind().GroupKind() == definitionKind {
			err = a.waitServed(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (a *Applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := a.resource(object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: a.manager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	status, ok, err := unstructured.NestedMap(object.Object, "status")
	if err != nil || !ok || len(status) == 0 {
		return err
	}
	part := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	part.SetGroupVersionKind(object.GroupVersionKind())
	part.SetName(object.GetName())
	_, err = resource.ApplyStatus(ctx, object.GetName(), part, options)
	if apierrors.IsNotFound(err) {
		return nil // the kind has no status of its own, so it was applied with the rest
	}
	return err
}

func (a *Applier) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := a.mapping(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource), nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}

func (a *Applier) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		// It may have been defined since the server was asked.
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}

// waitServed waits until the server knows the kind that a definition defines.
func (a *Applier) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	last := errors.New("it was not asked yet")
	err := wait.PollUntilContextTimeout(ctx, establishPoll, establishTimeout, true, func(context.Context) (bool, error) {
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			if served, _, _ := unstructured.NestedBool(fields, "served"); !served {
				continue
			}
			if _, err := a.mapping(schema.GroupVersionKind{Group: group, Version: name, Kind: kind}); err != nil {
				last = err
				return false, nil //nolint:nilerr // it is asked again
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("its kind is not served: %w: %w", err, last)
	}
	return nil
}
