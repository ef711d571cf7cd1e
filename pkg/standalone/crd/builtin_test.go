// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/coordination"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/superedge"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

// TestDefinitionOfABuiltInResource defines what the server has itself, which
// someone may do who knows it from another cluster. The definition goes as any
// other one does, and takes only what was stored by way of it.
func TestDefinitionOfABuiltInResource(t *testing.T) {
	for _, test := range []struct {
		name       string
		definition *apiextensionsv1.CustomResourceDefinition
		mediaType  string
		newStorage func(generic.RESTOptionsGetter) (map[string]rest.Storage, error)
		built      runtime.Object
		custom     string
	}{
		{
			name: "ServiceGrids", definition: readDefinition(t), mediaType: runtime.ContentTypeJSON, newStorage: superedge.NewStorage,
			built:  &superedgev1.ServiceGrid{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: superedgev1.ServiceGridSpec{GridUniqKey: "zone"}},
			custom: "{spec: {gridUniqKey: zone, template: {ports: [{port: 80}]}}}",
		},
		{
			name: "Leases", definition: newLeases(), mediaType: runtime.ContentTypeProtobuf, newStorage: coordination.NewStorage,
			built: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}, custom: "{}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			spec := test.definition.Spec
			resource := schema.GroupVersionResource{Group: spec.Group, Version: "v1", Resource: spec.Names.Plural}
			types, err := scheme.New()
			if err != nil {
				t.Fatal(err)
			}
			codecs := scheme.NewCodecs(types)
			storages, err := test.newStorage(s.backend.Getter(func(schema.GroupResource) (runtime.Codec, error) {
				return backend.NewCodec(codecs, test.mediaType, resource.GroupVersion())
			}))
			if err != nil {
				t.Fatal(err)
			}
			store := storages[resource.Resource].(rest.StandardStorage)
			t.Cleanup(store.Destroy)
			eventually(t, "filled", func(context.Context) (bool, error) { return s.backend.ReadinessCheck() == nil, nil })
			ctx := genericapirequest.WithNamespace(t.Context(), "default")
			if _, err := store.Create(ctx, test.built, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}

			s.define(t, test.definition)
			objects := s.objects.Resource(resource).Namespace("default")
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.custom), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetGroupVersionKind(resource.GroupVersion().WithKind(spec.Names.Kind))
			object.SetName("b")
			if _, err := objects.Create(t.Context(), object, createOptions); err != nil {
				t.Fatal(err)
			}
			if list, err := objects.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
				t.Errorf("the custom objects: %v, %v", list, err)
			}
			definitions := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
			if err := definitions.Delete(t.Context(), test.definition.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "gone", func(ctx context.Context) (bool, error) {
				_, err := definitions.Get(ctx, test.definition.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
			if _, err := store.Get(ctx, "a", &metav1.GetOptions{}); err != nil {
				t.Errorf("the built-in object: %v", err)
			}
		})
	}
}

func readDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// newLeases defines Leases of any content.
func newLeases() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "leases.coordination.k8s.io",
			// The group belongs to Kubernetes.
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: coordinationv1.GroupName,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "leases", Singular: "lease", Kind: "Lease", ListKind: "LeaseList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
