// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

func newGrid(change func(*superedgev1.ServiceGrid)) *superedgev1.ServiceGrid {
	grid := &superedgev1.ServiceGrid{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g", UID: "uid-g", Generation: 1},
		Spec: superedgev1.ServiceGridSpec{
			GridUniqKey: "zone1",
			Template:    corev1.ServiceSpec{Selector: map[string]string{"app": "g"}, Ports: []corev1.ServicePort{{Port: 80}}},
		},
	}
	if change != nil {
		change(grid)
	}
	return grid
}

func TestNamesOfTheAnnotationAgree(t *testing.T) {
	if superedgev1.AnnotationTopologyKeys != topology.TopologyKeysAnnotation {
		t.Errorf("the view reads %q, the controller writes %q", topology.TopologyKeysAnnotation, superedgev1.AnnotationTopologyKeys)
	}
}

func TestServiceIsCreatedWithAllOfTheGrid(t *testing.T) {
	grid := newGrid(func(g *superedgev1.ServiceGrid) {
		g.Labels = map[string]string{"team": "x", superedgev1.LabelGridSelector: "mine"}
		g.Annotations = map[string]string{
			"note": "y", "topologyKeys": `["mine"]`, topology.TopologyPolicyAnnotation: "ordered",
			corev1.LastAppliedConfigAnnotation: "{}", "meta.helm.sh/release-name": "r",
		}
	})
	unchanged := grid.DeepCopy()
	service := desiredService(grid, nil)
	want := metav1.ObjectMeta{
		Namespace: namespace, Name: "g-svc",
		Labels: map[string]string{"team": "x", "superedge.io/grid-selector": "g", "superedge.io/grid-uniq-key": "zone1"},
		Annotations: map[string]string{
			"note": "y", "topologyKeys": `["zone1"]`, "superedge.io/topology-policy": "ordered",
			"superedge.io/carried-keys": `{"labels":["superedge.io/grid-selector","team"],"annotations":["note","superedge.io/topology-policy","topologyKeys"]}`,
		},
		OwnerReferences: []metav1.OwnerReference{ownerOf(grid)},
	}
	if diff := cmp.Diff(want, service.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(unchanged, grid); diff != "" {
		t.Errorf("the grid was changed:\n%s", diff)
	}
	if policy, err := topology.ParsePolicy(service.Annotations); err != nil || !cmp.Equal(policy.Keys, []string{"zone1"}) {
		t.Errorf("the view reads %+v, %v", policy, err)
	}
}

func TestMetadataOfOthersStaysAndThatOfTheGridFollowsIt(t *testing.T) {
	grid := newGrid(func(g *superedgev1.ServiceGrid) {
		g.Labels = map[string]string{"a": "1", "b": "1"}
		g.Annotations = map[string]string{"c": "1", "d": "1"}
	})
	live := desiredService(grid, nil)
	live.Labels["theirs"], live.Annotations["theirs"] = "2", "2"
	live.Finalizers = []string{"example.com/theirs"}
	live.OwnerReferences = append(live.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"})

	grid.Labels, grid.Annotations = map[string]string{"b": "2"}, map[string]string{"theirs": "grid's"}
	grid.Spec.GridUniqKey = "example.com/zone"
	unchanged := live.DeepCopy()
	got := desiredService(grid, live)
	want := live.DeepCopy()
	want.Labels = map[string]string{
		"b": "2", "theirs": "2", "superedge.io/grid-selector": "g", "superedge.io/grid-uniq-key": "example.com.zone",
	}
	want.Annotations = map[string]string{
		"theirs": "grid's", "topologyKeys": `["example.com/zone"]`, "superedge.io/carried-keys": `{"labels":["b"],"annotations":["theirs"]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(unchanged, live); diff != "" {
		t.Errorf("the live Service was changed:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"metadata.labels", "metadata.annotations"}, differences(live, got)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := differences(got, desiredService(grid, got)); got != nil {
		t.Errorf("it is not what it wants: %q", got)
	}

	grid.Labels, grid.Annotations = nil, nil
	got = desiredService(grid, got)
	if _, ok := got.Annotations[carriedAnnotation]; ok || len(got.Labels) != 3 {
		t.Errorf("nothing is carried, but there is %v %v", got.Labels, got.Annotations)
	}
	got.Annotations[carriedAnnotation] = "{spoilt"
	if got = desiredService(grid, got); got.Labels["theirs"] != "2" || got.Annotations[carriedAnnotation] != "" {
		t.Errorf("after it was spoilt: %v %v", got.Labels, got.Annotations)
	}
}

func TestTemplateAsWrittenEqualsTheServiceAsDefaulted(t *testing.T) {
	grid := newGrid(nil)
	live := desiredService(grid, nil)
	// As an API server answers that knows fewer defaults, and one that knows all.
	live.Spec = grid.Spec.Template
	if got := differences(live, desiredService(grid, live)); got != nil {
		t.Errorf("without defaults: %q", got)
	}
	live.Spec = clusterIPSpec(func(s *corev1.ServiceSpec) { s.Selector = grid.Spec.Template.Selector })
	if got := differences(live, desiredService(grid, live)); got != nil {
		t.Errorf("with defaults: %q", got)
	}
	live.Spec.Selector, live.Spec.ExternalName = nil, "x"
	if diff := cmp.Diff([]string{"spec.selector", "spec.externalName"}, differences(live, desiredService(grid, live))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeyLabel(t *testing.T) {
	long := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 62)
	for _, key := range []string{"zone1", "example.com/zone", long, long + "c", strings.Repeat("a.", 31) + "a/a"} {
		value := keyLabel(key)
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("%s: %s: %q", key, value, problems)
		}
	}
	if keyLabel(long) == keyLabel(long+"c") {
		t.Error("two keys share a value")
	}
	if got := keyLabel("topology.kubernetes.io/zone"); got != "topology.kubernetes.io.zone" {
		t.Error(got)
	}
}
