// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

func build(t *testing.T, stores map[schema.GroupResource]*memory.Store) (*install.Readiness, error) {
	t.Helper()
	apiScheme, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := scheme.NewCodecs(apiScheme)
	getter := backing.NewOptionsGetter(scheme.NewStorageCodec(codecs), stores, nil)
	_, readiness, err := install.NewAPIGroupInfos(apiScheme, codecs, runtime.NewParameterCodec(apiScheme), getter)
	if err == nil {
		t.Cleanup(readiness.Destroy)
	}
	return readiness, err
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	readiness, err := build(t, newStores(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := readiness.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, resource := range install.Resources() {
		if err := readiness.Resource(resource); err != nil {
			t.Errorf("%s: %v", resource, err)
		}
	}
	if err := readiness.Resource(corev1.Resource("pods")); err == nil {
		t.Error("pods are ready, though not served")
	}

	readiness.Destroy()
	err = readiness.Check()
	if err == nil {
		t.Fatal("destroyed storage is ready")
	}
	for _, resource := range install.Resources() {
		if !strings.Contains(err.Error(), "watch cache of "+resource.String()) {
			t.Errorf("the error does not name %s: %v", resource, err)
		}
	}
}

func TestMissingStoreIsAnError(t *testing.T) {
	stores := newStores(t)
	delete(stores, slicesResource)
	// What was built before the failure must be stopped: TestMain looks for leaks.
	if _, err := build(t, stores); err == nil || !strings.Contains(err.Error(), slicesResource.String()) {
		t.Errorf("got %v, want an error that names %s", err, slicesResource)
	}
}
