// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/grid-apiserver/grid-apiserver/internal/manifest"
	gridscheme "github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned/scheme"
)

// fieldManager owns the fields of the objects that Options name.
const fieldManager = "testserver"

// createObjects puts what the options name into the server.
func (s *Server) createObjects(ctx context.Context, options Options) error {
	var objects []*unstructured.Unstructured
	for _, path := range options.Manifests {
		found, err := manifest.DecodePath(path)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	for i, object := range options.Objects {
		converted, err := toUnstructured(object)
		if err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
		objects = append(objects, converted)
	}
	if len(objects) > 0 {
		applier, err := manifest.NewApplier(s.Upstream, fieldManager)
		if err != nil {
			return err
		}
		if err := applier.Apply(ctx, objects...); err != nil {
			return err
		}
	}
	if options.Node == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(s.Upstream)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, options.Node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the node %s: %w", options.Node.Name, err)
	}
	return nil
}

// toUnstructured returns an object with its kind, which typed ones rarely carry.
func toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		var err error
		if kind, err = kindOf(object); err != nil {
			return nil, err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(kind)
	if converted.GetName() == "" {
		return nil, fmt.Errorf("a %s without a name", kind.Kind)
	}
	return converted, nil
}

func kindOf(object runtime.Object) (schema.GroupVersionKind, error) {
	definitions := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(definitions); err != nil {
		return schema.GroupVersionKind{}, err
	}
	for _, types := range []*runtime.Scheme{kubernetesscheme.Scheme, gridscheme.Scheme, definitions} {
		if kinds, _, err := types.ObjectKinds(object); err == nil {
			return kinds[0], nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("the type %T is not built in, and the object does not say its apiVersion and kind", object)
}
