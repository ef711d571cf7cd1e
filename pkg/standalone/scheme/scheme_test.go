// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// examples decodes each file in testdata, which gives it its defaults, into its
// internal form.
func examples(t *testing.T, s *runtime.Scheme) map[string]runtime.Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	objects := map[string]runtime.Object{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := NewCodecs(s).UniversalDecoder(internalVersions()...).Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects[strings.TrimSuffix(filepath.Base(file), ".yaml")] = object
	}
	return objects
}

func internalVersions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, version := range Versions() {
		versions = append(versions, schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal})
	}
	return versions
}

// versionOf is the version in which an example is written.
func versionOf(t *testing.T, name string) schema.GroupVersionKind {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var header struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(data, &header); err != nil {
		t.Fatal(err)
	}
	return schema.FromAPIVersionAndKind(header.APIVersion, header.Kind)
}

func TestDefaults(t *testing.T) {
	s := newScheme(t)
	for name, object := range examples(t, s) {
		t.Run(name, func(t *testing.T) {
			version := versionOf(t, name)
			info, _ := runtime.SerializerInfoForMediaType(NewCodecs(s).SupportedMediaTypes(), runtime.ContentTypeYAML)
			got, err := runtime.Encode(NewCodecs(s).EncoderForVersion(info.Serializer, version.GroupVersion()), object)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreSetOnce(t *testing.T) {
	s := newScheme(t)
	for name, object := range examples(t, s) {
		again := object.DeepCopyObject()
		s.Default(again)
		if diff := cmp.Diff(object, again); diff != "" {
			t.Errorf("%s changes when it gets its defaults again (-once +twice):\n%s", name, diff)
		}
	}
}

func TestEveryKindHasAnExample(t *testing.T) {
	s := newScheme(t)
	covered := map[schema.GroupVersionKind]bool{}
	for name := range examples(t, s) {
		covered[versionOf(t, name)] = true
	}
	for _, g := range groups() {
		for _, object := range g.types {
			kind := g.version.WithKind(reflect.TypeOf(object).Elem().Name())
			isResource := !strings.HasSuffix(kind.Kind, "List") && !strings.HasSuffix(kind.Kind, "Review") &&
				kind.Kind != "TokenRequest" && kind.Kind != "Scale"
			if isResource && !covered[kind] {
				t.Errorf("testdata has no %s", kind)
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	s := newScheme(t)
	codecs := NewCodecs(s)
	for name, object := range examples(t, s) {
		version := versionOf(t, name)
		for _, info := range codecs.SupportedMediaTypes() {
			if version.Group == superedgev1.GroupName && info.MediaType == runtime.ContentTypeProtobuf {
				continue // no CustomResource has that form
			}
			t.Run(name+" as "+info.MediaType, func(t *testing.T) {
				data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version.GroupVersion()), object.DeepCopyObject())
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := codecs.UniversalDecoder(internalVersions()...).Decode(data, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !apiequality.Semantic.DeepEqual(object, got) {
					t.Errorf("after a round trip (-want +got):\n%s", cmp.Diff(object, got))
				}
			})
		}
	}
}

func TestTypesAreServedInTheirInternalForm(t *testing.T) {
	s := newScheme(t)
	for _, g := range groups() {
		for i, object := range g.types {
			kind := reflect.TypeOf(object).Elem().Name()
			hub := object
			if g.internal != nil {
				hub = g.internal[i]
			}
			internal := schema.GroupVersion{Group: g.version.Group, Version: runtime.APIVersionInternal}
			for version, want := range map[schema.GroupVersion]runtime.Object{g.version: object, internal: hub} {
				created, err := s.New(version.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				if reflect.TypeOf(created) != reflect.TypeOf(want) {
					t.Errorf("%s of %s is a %T", kind, version, created)
				}
			}
		}
	}
}

// Objects of both groups are stored as those of core/v1.
func TestStoredVersionOfEvents(t *testing.T) {
	s := newScheme(t)
	codec := NewCodecs(s).LegacyCodec(corev1.SchemeGroupVersion)
	data, err := runtime.Encode(codec, examples(t, s)["event.events"])
	if err != nil {
		t.Fatal(err)
	}
	kind, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"apiVersion":"v1"`) {
		t.Errorf("stored as %s", data)
	}
	if _, ok := kind.(*corev1.Event); !ok {
		t.Errorf("read as a %T", kind)
	}
}

func TestEventListConversion(t *testing.T) {
	s := newScheme(t)
	stored := &corev1.EventList{Items: []corev1.Event{*examples(t, s)["event"].(*corev1.Event), *examples(t, s)["event.events"].(*corev1.Event)}}
	stored.ResourceVersion = "7"
	converted, err := s.ConvertToVersion(stored, eventsv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	list, ok := converted.(*eventsv1.EventList)
	if !ok || len(list.Items) != 2 || list.ResourceVersion != "7" || list.Items[1].Note != "done" {
		t.Fatalf("got %#v", converted)
	}
	back, err := s.ConvertToVersion(list, schema.GroupVersion{Group: eventsv1.GroupName, Version: runtime.APIVersionInternal})
	if err != nil {
		t.Fatal(err)
	}
	back.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	for i := range back.(*corev1.EventList).Items {
		back.(*corev1.EventList).Items[i].TypeMeta = stored.Items[i].TypeMeta
	}
	if diff := cmp.Diff(stored, back); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}

func TestFieldLabels(t *testing.T) {
	s := newScheme(t)
	core, events := corev1.SchemeGroupVersion, eventsv1.SchemeGroupVersion
	for _, test := range []struct {
		kind        schema.GroupVersionKind
		label, want string // no want: it is refused
	}{
		{core.WithKind("Pod"), "spec.nodeName", "spec.nodeName"},
		{core.WithKind("Pod"), "spec.host", "spec.nodeName"},
		{core.WithKind("Pod"), "status.podIP", "status.podIP"},
		{core.WithKind("Pod"), "spec.containers", ""},
		{core.WithKind("Node"), "metadata.namespace", ""},
		{core.WithKind("Secret"), "type", "type"},
		{core.WithKind("ConfigMap"), "metadata.namespace", "metadata.namespace"},
		{core.WithKind("ConfigMap"), "data", ""},
		{core.WithKind("Event"), "involvedObject.name", "involvedObject.name"},
		{core.WithKind("Event"), "regarding.name", ""},
		{events.WithKind("Event"), "regarding.name", "involvedObject.name"},
		{events.WithKind("Event"), "reportingController", "reportingComponent"},
		{events.WithKind("Event"), "involvedObject.name", ""},
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, "status.replicas", ""},
	} {
		got, value, err := s.ConvertFieldLabel(test.kind, test.label, "x")
		if (err == nil) != (test.want != "") || got != test.want {
			t.Errorf("%s %s: got %q, %v, want %q", test.kind.Kind, test.label, got, err, test.want)
		}
		if err == nil && value != "x" {
			t.Errorf("%s %s: the value became %q", test.kind.Kind, test.label, value)
		}
	}
}
