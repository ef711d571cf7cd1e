// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"

	generatedopenapi "github.com/grid-apiserver/grid-apiserver/pkg/generated/openapi"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/openapi"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

// Kinds that share definitions are described at the same time, while other
// descriptions are read. The race detector watches.
func TestKindsAreDescribedConcurrently(t *testing.T) {
	types, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	models := openapi.New("test", "v1.0.0", types, generatedopenapi.GetOpenAPIDefinitions)
	converter := models.TypeConverter()
	var running sync.WaitGroup
	for kind := range types.AllKnownTypes() {
		if kind.GroupVersion() != corev1.SchemeGroupVersion {
			continue
		}
		object, err := types.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		running.Go(func() { _, _ = converter.ObjectToTyped(object) }) // some are no objects of the API
	}
	for range 3 {
		running.Go(func() {
			described, err := builder3.BuildOpenAPIDefinitionsForResources(models.V3Config(), openapiutil.GetCanonicalTypeName(&corev1.Pod{}))
			if err != nil {
				t.Error(err)
			}
			if text, err := json.Marshal(described); err != nil || len(text) == 0 {
				t.Error(err)
			}
		})
	}
	running.Wait()
}
