// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/*.out.yaml from what the package does now")

// goldenInput is testdata/*.in.yaml: a cluster, one Service in it, and what
// upstream has. The comment at its head says what the case is about.
type goldenInput struct {
	// Node is the name of this node; Nodes are the labels of all nodes.
	Node  string                       `json:"node"`
	Nodes map[string]map[string]string `json:"nodes"`
	// Service has a name, annotations and spec.ipFamilies.
	Service        corev1.Service              `json:"service"`
	EndpointSlices []discoveryv1.EndpointSlice `json:"endpointSlices,omitempty"`
	Endpoints      *corev1.Endpoints           `json:"endpoints,omitempty"`
}

// goldenOutput is testdata/*.out.yaml: the view of the node.
type goldenOutput struct {
	// Malformed is the error of the annotations.
	Malformed      string                       `json:"malformed,omitempty"`
	EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointSlices,omitempty"`
	Endpoints      *corev1.Endpoints            `json:"endpoints,omitempty"`
}

func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in.yaml"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var in, untouched goldenInput
			for _, into := range []*goldenInput{&in, &untouched} {
				if err := yaml.UnmarshalStrict(data, into); err != nil {
					t.Fatal(err)
				}
			}
			got, err := yaml.Marshal(viewOf(&in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(untouched, in); diff != "" {
				t.Errorf("the input was changed (-before +after):\n%s", diff)
			}

			golden := strings.TrimSuffix(path, ".in.yaml") + ".out.yaml"
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
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
}

// viewOf filters as pkg/watchcache does: the slices of the Service are those
// that its name is on, and all others are left alone.
func viewOf(in *goldenInput) goldenOutput {
	var out goldenOutput
	loc := cluster{self: in.Node, nodes: in.Nodes}
	p, err := ParsePolicy(in.Service.Annotations)
	if err != nil {
		out.Malformed = err.Error()
	}
	belongs := func(slice *discoveryv1.EndpointSlice) bool {
		name, ok := ServiceName(slice)
		return ok && name == in.Service.Name
	}
	var own []*discoveryv1.EndpointSlice
	for i := range in.EndpointSlices {
		if belongs(&in.EndpointSlices[i]) {
			own = append(own, &in.EndpointSlices[i])
		}
	}
	selection := Select(p, loc, own)
	for i := range in.EndpointSlices {
		slice := &in.EndpointSlices[i]
		if belongs(slice) {
			slice = selection.Slice(loc, slice)
		}
		out.EndpointSlices = append(out.EndpointSlices, slice)
	}
	if in.Endpoints != nil {
		family := discoveryv1.AddressTypeIPv4
		if len(in.Service.Spec.IPFamilies) > 0 {
			family = discoveryv1.AddressType(in.Service.Spec.IPFamilies[0])
		}
		out.Endpoints = selection.Endpoints(loc, family, in.Endpoints)
	}
	return out
}

func TestServiceName(t *testing.T) {
	tests := []struct {
		name   string
		slice  metav1.ObjectMeta
		want   string
		wantOK bool
	}{
		{"label", metav1.ObjectMeta{Name: "zzz", Labels: map[string]string{discoveryv1.LabelServiceName: "s"}}, "s", true},
		{"label against name and generateName", metav1.ObjectMeta{Name: "s-foo-bar", GenerateName: "s-foo-", Labels: map[string]string{discoveryv1.LabelServiceName: "s"}}, "s", true},
		{"no label", metav1.ObjectMeta{Name: "s-abcde", GenerateName: "s-"}, "", false},
		{"empty label", metav1.ObjectMeta{Name: "s-abcde", Labels: map[string]string{discoveryv1.LabelServiceName: ""}}, "", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := ServiceName(&discoveryv1.EndpointSlice{ObjectMeta: tc.slice})
			if got != tc.want || ok != tc.wantOK {
				t.Errorf("got %q, %t; want %q, %t", got, ok, tc.want, tc.wantOK)
			}
		})
	}
}
