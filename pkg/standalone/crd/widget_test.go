// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

const widgetGroup = "example.org"

var (
	widgetsV1 = schema.GroupVersionResource{Group: widgetGroup, Version: "v1", Resource: "widgets"}
	widgetsV2 = widgetsV1.GroupResource().WithVersion("v2")

	createOptions metav1.CreateOptions
)

// newWidgets defines a resource in two versions: the stored v1, and v2, which has one more default.
func newWidgets() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool, more map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
		properties := map[string]apiextensionsv1.JSONSchemaProps{
			"size":  {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
			"name":  {Type: "string"},
			"color": {Type: "string"},
		}
		for key, value := range more {
			properties[key] = value
		}
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {
						Type: "object", Properties: properties,
						Default: &apiextensionsv1.JSON{Raw: []byte("{}")},
						XValidations: apiextensionsv1.ValidationRules{{
							Rule: "!has(self.size) || self.size <= 10", Message: "too large",
						}},
					},
					"status": {Type: "object", XPreserveUnknownFields: ptr.To(true)},
				},
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetGroup,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wd"}},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", true, nil),
				version("v2", false, map[string]apiextensionsv1.JSONSchemaProps{
					"color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}},
				}),
			},
		},
	}
}
