// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func unstructuredOf(definition *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	return &unstructured.Unstructured{Object: content}, nil
}

// get reads a document as a client that accepts only this form.
func (s *server) get(t testing.TB, path, accept string) (string, error) {
	t.Helper()
	request := s.client.Discovery().RESTClient().Get().SetHeader("Accept", accept)
	raw, err := request.AbsPath(path).Do(t.Context()).Raw()
	return string(raw), err
}

const (
	plain      = "application/json"
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

func TestDiscovery(t *testing.T) {
	s := start(t)
	const group = `"name":"` + widgetGroup + `"`
	shows := func(accept string) bool {
		document, err := s.get(t, "/apis", accept)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(document, `"name":"apiextensions.k8s.io"`) {
			t.Fatalf("definitions cannot be discovered: %s", document)
		}
		return strings.Contains(document, group)
	}
	if shows(plain) || shows(aggregated) {
		t.Fatal("it shows before it is defined")
	}
	s.define(t, newWidgets())
	for name, accept := range map[string]string{"plain": plain, "aggregated": aggregated} {
		eventually(t, "shown in the form "+name, func(context.Context) (bool, error) { return shows(accept), nil })
	}
	groups, err := s.client.Discovery().WithLegacy().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			got = append(got, v.GroupVersion)
		}
	}
	if diff := cmp.Diff([]string{"apiextensions.k8s.io/v1", "example.org/v2", "example.org/v1"}, got); diff != "" {
		t.Errorf("groups and versions (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/apis/" + widgetGroup, "/apis/example.org/v2"} {
		if _, err := s.get(t, path, plain); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}

	if err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Delete(t.Context(), "widgets."+widgetGroup, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, accept := range map[string]string{"plain": plain, "aggregated": aggregated} {
		eventually(t, "hidden in the form "+name, func(context.Context) (bool, error) { return !shows(accept), nil })
	}
}

func TestDocuments(t *testing.T) {
	s := start(t)
	described := func(path, name string) bool {
		document, err := s.get(t, path, plain)
		if err != nil || document == "" { // an unknown group and version has an empty one
			return false
		}
		var parsed struct {
			Definitions map[string]any
			Components  struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal([]byte(document), &parsed); err != nil {
			t.Fatal(err)
		}
		_, v2 := parsed.Definitions[name]
		_, v3 := parsed.Components.Schemas[name]
		return v2 || v3
	}
	const definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/apiextensions.k8s.io/v1"} {
		if !described(path, definition) {
			t.Errorf("%s does not describe definitions", path)
		}
	}
	s.define(t, newWidgets())
	for _, version := range []string{"v1", "v2"} {
		for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/example.org/" + version} {
			eventually(t, "described in "+path, func(context.Context) (bool, error) {
				return described(path, "org.example."+version+".Widget"), nil
			})
		}
	}
	if !described("/openapi/v2", definition) {
		t.Error("definitions are no longer described")
	}
	if index, err := s.get(t, "/openapi/v3", plain); err != nil || !strings.Contains(index, "apis/example.org/v1") {
		t.Errorf("the index: %v %s", err, index)
	}
	if err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Delete(t.Context(), "widgets."+widgetGroup, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/example.org/v1"} {
		eventually(t, "gone from "+path, func(context.Context) (bool, error) {
			return !described(path, "org.example.v1.Widget"), nil
		})
	}
}

func TestServersDoNotShare(t *testing.T) {
	var wg sync.WaitGroup
	for range 2 {
		s := start(t)
		wg.Go(func() {
			if _, err := s.objects.Resource(widgetsV1).Create(t.Context(), object("example.org/v1", "a", nil), createOptions); err == nil {
				t.Error("it is defined in the other server")
			}
			definition := newWidgets()
			if _, err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, createOptions); err != nil {
				t.Error(err)
				return
			}
			begin := time.Now()
			for t.Context().Err() == nil {
				_, err := s.objects.Resource(widgetsV2).Create(t.Context(), object("example.org/v2", "a", nil), createOptions)
				if err == nil {
					t.Logf("usable %v after it was defined", time.Since(begin))
					return
				}
				if time.Since(begin) > 20*time.Second {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
