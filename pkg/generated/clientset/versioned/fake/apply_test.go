// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	superedgev1apply "github.com/grid-apiserver/grid-apiserver/pkg/generated/applyconfiguration/superedge/v1"
)

// The names by which the apply configurations find their schema are not those that the generator infers.
func TestAppliedFieldsAreMergedByTheSchema(t *testing.T) {
	grids := NewClientset().SuperedgeV1().ServiceGrids("default")
	port := func(port int32) *superedgev1apply.ServiceGridApplyConfiguration {
		return superedgev1apply.ServiceGrid("echo", "default").WithSpec(superedgev1apply.ServiceGridSpec().WithGridUniqKey("zone1").
			WithTemplate(corev1apply.ServiceSpec().WithPorts(corev1apply.ServicePort().WithPort(port).WithProtocol(corev1.ProtocolTCP))))
	}
	if _, err := grids.Apply(t.Context(), port(80), metav1.ApplyOptions{FieldManager: "a"}); err != nil {
		t.Fatal(err)
	}
	grid, err := grids.Apply(t.Context(), port(81), metav1.ApplyOptions{FieldManager: "b"})
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 81, Protocol: corev1.ProtocolTCP}}
	if diff := cmp.Diff(want, grid.Spec.Template.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	extracted, err := superedgev1apply.ExtractServiceGrid(grid, "a")
	if err != nil {
		t.Fatal(err)
	}
	if ports := extracted.Spec.Template.Ports; len(ports) != 1 || *ports[0].Port != 80 {
		t.Errorf("ports of the first applier: %v", ports)
	}
}
