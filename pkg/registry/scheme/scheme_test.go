// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTypesAreServedInTheirInternalForm(t *testing.T) {
	s := newScheme(t)
	for _, g := range groups() {
		internal := schema.GroupVersion{Group: g.version.Group, Version: runtime.APIVersionInternal}
		for _, object := range g.types {
			kind := reflect.TypeOf(object).Elem().Name()
			for _, version := range []schema.GroupVersion{g.version, internal} {
				created, err := s.New(version.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				if reflect.TypeOf(created) != reflect.TypeOf(object) {
					t.Errorf("%s of %s is a %T", kind, version, created)
				}
				// Encoders convert like this; another object would be a copy per request.
				converted, err := s.UnsafeConvertToVersion(object, version)
				if err != nil {
					t.Fatal(err)
				}
				if converted != object {
					t.Errorf("%s becomes another object in %s", kind, version)
				}
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	s := newScheme(t)
	codecs := NewCodecs(s)
	want := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "7"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.10"},
	}
	for _, info := range codecs.SupportedMediaTypes() {
		t.Run(info.MediaType, func(t *testing.T) {
			data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), want.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1.Service{}
			if _, _, err := info.Serializer.Decode(data, nil, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after a round trip (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStorageCodecKnowsEveryType(t *testing.T) {
	codec := NewStorageCodec(NewCodecs(newScheme(t)))
	for _, g := range groups() {
		for _, object := range g.types {
			kind := g.version.WithKind(reflect.TypeOf(object).Elem().Name())
			if err := runtime.CheckCodec(codec, object, kind); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestFieldLabels(t *testing.T) {
	s := newScheme(t)
	tests := []struct {
		kind      schema.GroupVersionKind
		label     string
		supported bool
	}{
		{corev1.SchemeGroupVersion.WithKind("Service"), "spec.clusterIP", true},
		{corev1.SchemeGroupVersion.WithKind("Service"), "spec.type", true},
		{corev1.SchemeGroupVersion.WithKind("Service"), "metadata.namespace", true},
		{corev1.SchemeGroupVersion.WithKind("Service"), "spec.ports", false},
		{corev1.SchemeGroupVersion.WithKind("Node"), "spec.unschedulable", true},
		{corev1.SchemeGroupVersion.WithKind("Node"), "metadata.namespace", false},
		{corev1.SchemeGroupVersion.WithKind("Namespace"), "status.phase", true},
		{corev1.SchemeGroupVersion.WithKind("Namespace"), "metadata.namespace", false},
		{corev1.SchemeGroupVersion.WithKind("Endpoints"), "metadata.namespace", true},
		{corev1.SchemeGroupVersion.WithKind("Endpoints"), "subsets", false},
		{schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}, "metadata.name", true},
		{schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}, "addressType", false},
	}
	for _, test := range tests {
		label, value, err := s.ConvertFieldLabel(test.kind, test.label, "x")
		if (err == nil) != test.supported {
			t.Errorf("%s %s: got %v, want it supported: %v", test.kind.Kind, test.label, err, test.supported)
		}
		if err == nil && (label != test.label || value != "x") {
			t.Errorf("%s %s became %s=%s", test.kind.Kind, test.label, label, value)
		}
	}
}
