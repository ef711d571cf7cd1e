// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func get(t *testing.T, client kubernetes.Interface, path string) []byte {
	t.Helper()
	body, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return body
}

// Every version that discovery lists has a document, and no document shows the
// internal form of a type.
func TestDocumentsDescribeWhatDiscoveryLists(t *testing.T) {
	for name, custom := range map[string]bool{"without custom resources": false, "with custom resources": true} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t)
			config.CustomResources = custom
			_, client := start(t, config)
			var documents struct {
				Paths map[string]struct {
					ServerRelativeURL string `json:"serverRelativeURL"`
				} `json:"paths"`
			}
			if err := json.Unmarshal(get(t, client, "/openapi/v3"), &documents); err != nil {
				t.Fatal(err)
			}
			_, lists, err := client.Discovery().ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			if custom != slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "apiextensions.k8s.io/v1" }) {
				t.Error("discovery is wrong about custom resources")
			}
			for _, list := range lists {
				path := "apis/" + list.GroupVersion
				if !strings.Contains(list.GroupVersion, "/") {
					path = "api/" + list.GroupVersion
				}
				if _, ok := documents.Paths[path]; !ok {
					t.Errorf("there is no document of %s", list.GroupVersion)
				}
			}
			for path := range documents.Paths {
				if body := string(get(t, client, "/openapi/v3/"+path)); strings.Contains(body, "__internal") {
					t.Errorf("the document of %s shows internal types", path)
				}
			}
			checkV2(t, get(t, client, "/openapi/v2"))
		})
	}
}

func checkV2(t *testing.T, body []byte) {
	t.Helper()
	var document struct {
		Definitions map[string]struct {
			Kinds []map[string]string `json:"x-kubernetes-group-version-kind"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{
		"io.k8s.api.core.v1.Pod": "/v1/Pod", "io.k8s.api.events.v1.Event": "events.k8s.io/v1/Event", "io.superedge.v1.ServiceGrid": "superedge.io/v1/ServiceGrid",
	} {
		definition := document.Definitions[name]
		if len(definition.Kinds) != 1 || definition.Kinds[0]["group"]+"/"+definition.Kinds[0]["version"]+"/"+definition.Kinds[0]["kind"] != kind {
			t.Errorf("%s is defined as %v, want %s", name, definition.Kinds, kind)
		}
	}
	if strings.Contains(string(body), "__internal") {
		t.Error("OpenAPI v2 shows internal types")
	}
}
