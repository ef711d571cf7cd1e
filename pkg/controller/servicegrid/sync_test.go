// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// decision is a plan in few words.
type decision struct {
	Create, Update, Adopted, Ours bool
	Surplus, Released             []string
	Reason                        string
}

func (p plan) short() decision {
	d := decision{Create: p.create != nil, Update: p.update != nil, Adopted: p.adopted, Ours: p.service != nil, Reason: p.blocked.reason}
	for _, service := range p.surplus {
		d.Surplus = append(d.Surplus, service.Name)
	}
	for _, service := range p.released {
		d.Released = append(d.Released, service.Name)
	}
	return d
}

func TestDecide(t *testing.T) {
	grid := newGrid(nil)
	type services = []*corev1.Service
	service := func(name string, change func(*corev1.Service)) *corev1.Service {
		s := desiredService(grid, nil)
		s.Name = name
		if change != nil {
			change(s)
		}
		return s
	}
	unlabelled := func(s *corev1.Service) { delete(s.Labels, superedgev1.LabelGridSelector) }
	orphaned := func(s *corev1.Service) { s.OwnerReferences = nil }
	dying := func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} }
	theirs := func(s *corev1.Service) { s.OwnerReferences[0].UID = "other" }
	for _, tc := range []struct {
		name     string
		change   func(*superedgev1.ServiceGrid)
		services services
		want     decision
	}{
		{name: "nothing there", want: decision{Create: true}},
		{name: "as it should be", services: services{service("g-svc", nil)}, want: decision{Ours: true}},
		{
			name: "a changed port", change: func(g *superedgev1.ServiceGrid) { g.Spec.Template.Ports[0].Port = 81 },
			services: services{service("g-svc", nil)}, want: decision{Ours: true, Update: true},
		},
		{
			name: "a changed key", change: func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "zone2" },
			services: services{service("g-svc", nil)}, want: decision{Ours: true, Update: true},
		},
		{
			name: "no key: all stays as it is", change: func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey, g.Labels = "", map[string]string{"a": "b"} },
			services: services{service("g-svc", nil), service("x", nil), service("y", unlabelled)}, want: decision{Ours: true, Reason: "InvalidKey"},
		},
		{name: "no key and no Service", change: func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "a b" }, want: decision{Reason: "InvalidKey"}},
		{name: "star is no key", change: func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "*" }, want: decision{Reason: "InvalidKey"}},
		{name: "a name that a Service can just have", change: func(g *superedgev1.ServiceGrid) { g.Name = strings.Repeat("g", 59) }, want: decision{Create: true}},
		{name: "a name too long for a Service", change: func(g *superedgev1.ServiceGrid) { g.Name = strings.Repeat("g", 60) }, want: decision{Reason: "ServiceInvalid"}},
		{name: "a name with dots", change: func(g *superedgev1.ServiceGrid) { g.Name = "g.h" }, want: decision{Reason: "ServiceInvalid"}},
		{name: "adopts", services: services{service("g-svc", orphaned)}, want: decision{Update: true, Adopted: true}},
		{name: "does not adopt another name", services: services{service("g-svc", nil), service("x", orphaned)}, want: decision{Ours: true}},
		{name: "no label", services: services{service("g-svc", func(s *corev1.Service) { orphaned(s); unlabelled(s) })}, want: decision{Reason: "ServiceConflict"}},
		{name: "another controller", services: services{service("g-svc", theirs)}, want: decision{Reason: "ServiceConflict"}},
		{name: "releases", services: services{service("g-svc", unlabelled)}, want: decision{Released: []string{"g-svc"}, Reason: "ServiceConflict"}},
		{
			name: "surplus", services: services{service("y", nil), service("g-svc", nil), service("x", nil), service("z", unlabelled), service("dying", dying)},
			want: decision{Ours: true, Surplus: []string{"x", "y"}, Released: []string{"z"}},
		},
		{name: "being deleted", services: services{service("g-svc", dying)}, want: decision{Ours: true, Reason: "Failed"}},
		{
			name: "what cannot be changed", change: func(g *superedgev1.ServiceGrid) { g.Spec.Template.ClusterIP = "10.0.0.9" },
			services: services{service("g-svc", func(s *corev1.Service) { s.Spec.ClusterIP = "10.0.0.7" })},
			want:     decision{Ours: true, Reason: "ServiceInvalid"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observed{grid: grid.DeepCopy()}
			if tc.change != nil {
				tc.change(o.grid)
			}
			for _, s := range tc.services {
				if s.Name == serviceName(o.grid.Name) {
					o.named = s
				}
				if metav1.IsControlledBy(s, o.grid) {
					o.owned = append(o.owned, s)
				}
			}
			before := slices.Clone(o.owned)
			if diff := cmp.Diff(tc.want, decide(o).short()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(before, o.owned) {
				t.Error("the order of the argument was changed")
			}
		})
	}
}
