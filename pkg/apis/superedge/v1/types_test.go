// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

func TestTypesRoundTrip(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := superedgev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), codecs), nil)
}

// What a client writes that leaves out the status, and what SuperEdge's users have in their files.
func TestFieldNames(t *testing.T) {
	grid := superedgev1.ServiceGrid{Spec: superedgev1.ServiceGridSpec{GridUniqKey: "zone1"}}
	grid.APIVersion, grid.Kind, grid.Name = superedgev1.SchemeGroupVersion.String(), "ServiceGrid", "echo"
	grid.Spec.Template.Selector = map[string]string{"app": "echo"}
	got, err := yaml.Marshal(grid)
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: superedge.io/v1
kind: ServiceGrid
metadata:
  name: echo
spec:
  gridUniqKey: zone1
  template:
    selector:
      app: echo
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnnotationIsThatOfTheTopology(t *testing.T) {
	if superedgev1.AnnotationTopologyKeys != topology.TopologyKeysAnnotation {
		t.Errorf("%q, but the topology is made of %q", superedgev1.AnnotationTopologyKeys, topology.TopologyKeysAnnotation)
	}
}
