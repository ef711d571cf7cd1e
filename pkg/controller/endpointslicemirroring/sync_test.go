// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

// brief writes a slice as "IPv4 http:80 10.0.0.1 !10.0.0.2", not ready with "!".
func brief(slice *discoveryv1.EndpointSlice) string {
	parts := []string{string(slice.AddressType)}
	for _, port := range slice.Ports {
		parts = append(parts, fmt.Sprintf("%s:%d", *port.Name, *port.Port))
	}
	for _, endpoint := range slice.Endpoints {
		mark := "!"
		if *endpoint.Conditions.Ready {
			mark = ""
		}
		parts = append(parts, mark+strings.Join(endpoint.Addresses, "+"))
	}
	return strings.Join(parts, " ")
}

func briefs(slicesOfService []*discoveryv1.EndpointSlice) []string {
	lines := []string{}
	for _, slice := range slicesOfService {
		lines = append(lines, brief(slice))
	}
	slices.Sort(lines)
	return lines
}

func port(name string, number int32) corev1.EndpointPort {
	return corev1.EndpointPort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
}

func addresses(ips ...string) []corev1.EndpointAddress {
	var out []corev1.EndpointAddress
	for _, ip := range ips {
		out = append(out, corev1.EndpointAddress{IP: ip})
	}
	return out
}

func with(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return kube.Endpoints("s", func(endpoints *corev1.Endpoints) { endpoints.Subsets, endpoints.UID = subsets, "uid-of-s" })
}

func TestPlanNew(t *testing.T) {
	type subset = corev1.EndpointSubset
	http, web := []corev1.EndpointPort{port("http", 80)}, []corev1.EndpointPort{port("web", 8080)}
	for _, test := range []struct {
		name      string
		endpoints *corev1.Endpoints
		want      []string
		invalid   int
		surplus   int
	}{
		{"nothing", with(), []string{}, 0, 0},
		{"one subset", with(subset{Addresses: addresses("10.0.0.2", "10.0.0.1"), Ports: http}), []string{"IPv4 http:80 10.0.0.1 10.0.0.2"}, 0, 0},
		{
			"not ready addresses come last",
			with(subset{NotReadyAddresses: addresses("10.0.0.1"), Addresses: addresses("10.0.0.2"), Ports: http}),
			[]string{"IPv4 http:80 10.0.0.2 !10.0.0.1"}, 0, 0,
		},
		{
			"a slice for each family and list of ports",
			with(subset{Addresses: addresses("10.0.0.1", "fd00::1"), Ports: http}, subset{Addresses: addresses("10.0.0.2"), Ports: web}),
			[]string{"IPv4 http:80 10.0.0.1", "IPv4 web:8080 10.0.0.2", "IPv6 http:80 fd00::1"}, 0, 0,
		},
		{"without ports", with(subset{Addresses: addresses("10.0.0.1")}), []string{"IPv4 10.0.0.1"}, 0, 0},
		{
			"an address twice",
			with(subset{Addresses: addresses("10.0.0.1"), Ports: http}, subset{NotReadyAddresses: addresses("10.0.0.1"), Ports: http}),
			[]string{"IPv4 http:80 !10.0.0.1"}, 0, 0,
		},
		{
			"addresses in unusual forms, and what is none",
			with(subset{Addresses: addresses("010.0.0.01", "example.org", "FD00::0001"), Ports: http}),
			[]string{"IPv4 http:80 10.0.0.1", "IPv6 http:80 fd00::1"}, 1, 0,
		},
		{
			"too many addresses",
			with(subset{Addresses: addresses("10.0.0.1", "10.0.0.2", "10.0.0.3"), NotReadyAddresses: addresses("10.0.0.4", "10.0.0.5"), Ports: http}),
			[]string{"IPv4 http:80 10.0.0.1 10.0.0.2 10.0.0.3 !10.0.0.4"}, 0, 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes := Plan(test.endpoints, nil, 4)
			if diff := cmp.Diff(test.want, briefs(changes.Create)); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
			if changes.Invalid != test.invalid || changes.Surplus != test.surplus {
				t.Errorf("%d invalid, %d surplus, want %d and %d", changes.Invalid, changes.Surplus, test.invalid, test.surplus)
			}
			if len(changes.Update)+len(changes.Delete) > 0 {
				t.Errorf("also %+v", changes)
			}
			for i, slice := range changes.Create {
				slice.GenerateName, slice.Name = "", fmt.Sprint("s-", i)
			}
			again := Plan(test.endpoints, changes.Create, 4)
			if len(again.Create)+len(again.Update)+len(again.Delete) > 0 {
				t.Errorf("what is right is written again: %+v", again)
			}
		})
	}
}

func TestPlanMetadata(t *testing.T) {
	endpoints := with(corev1.EndpointSubset{
		Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1", Hostname: "host", NodeName: new("node1"), TargetRef: &corev1.ObjectReference{Name: "p"}}},
		Ports:     []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: new("h2c")}},
	})
	endpoints.Labels = map[string]string{"team": "blue", discoveryv1.LabelManagedBy: "me"}
	endpoints.Annotations = map[string]string{
		"note": "x", corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z", corev1.LastAppliedConfigAnnotation: "{}",
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kube.Namespace, GenerateName: "s-",
			Labels:      map[string]string{"team": "blue", discoveryv1.LabelServiceName: "s", discoveryv1.LabelManagedBy: ManagedBy},
			Annotations: map[string]string{"note": "x"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Endpoints", Name: "s", UID: "uid-of-s", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80)), Protocol: new(corev1.ProtocolTCP), AppProtocol: new("h2c")}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Hostname: new("host"), NodeName: new("node1"),
			TargetRef: &corev1.ObjectReference{Name: "p"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
	}
	if diff := cmp.Diff([]*discoveryv1.EndpointSlice{want}, Plan(endpoints, nil, 10).Create); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
}

func TestPlanChanges(t *testing.T) {
	http := []corev1.EndpointPort{port("http", 80)}
	endpoints := with(corev1.EndpointSubset{Addresses: addresses("10.0.0.1", "10.0.0.2"), Ports: http})
	endpoints.Labels, endpoints.Annotations = map[string]string{"team": "blue"}, map[string]string{"note": "x"}
	right := Plan(endpoints, nil, 10).Create[0]
	right.GenerateName, right.Name = "", "s-1"
	named := func(name string, edit func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		slice := right.DeepCopy()
		slice.Name = name
		edit(slice)
		return slice
	}
	as := func(slice *discoveryv1.EndpointSlice) string { return slice.Name + ": " + brief(slice) }
	content := "IPv4 http:80 10.0.0.1 10.0.0.2"
	for _, test := range []struct {
		name     string
		existing []*discoveryv1.EndpointSlice
		want     []string
	}{
		{"right", []*discoveryv1.EndpointSlice{right}, nil},
		{"another order", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { slices.Reverse(s.Endpoints) })}, nil},
		{"no annotations", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Annotations = nil })}, []string{"update s-1: " + content}},
		{"a label missing", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { delete(s.Labels, "team") })}, []string{"update s-1: " + content}},
		{"a strange label", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Labels["x"] = "y" })}, []string{"update s-1: " + content}},
		{"not ready", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(false) })}, []string{"update s-1: " + content}},
		{"one missing", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[1:] })}, []string{"update s-1: " + content}},
		{"one twice", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Endpoints[0] = s.Endpoints[1] })}, []string{"update s-1: " + content}},
		{"of a predecessor", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].UID = "old" })}, []string{"update s-1: " + content}},
		{"two", []*discoveryv1.EndpointSlice{named("s-2", func(*discoveryv1.EndpointSlice) {}), right}, []string{"delete s-2: " + content}},
		{"other ports, recycled", []*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) { s.Ports = nil })}, []string{"update s-1: " + content}},
		{
			"another family",
			[]*discoveryv1.EndpointSlice{named("s-1", func(s *discoveryv1.EndpointSlice) {
				s.AddressType, s.Endpoints = discoveryv1.AddressTypeIPv6, nil
			})},
			[]string{"create : " + content, "delete s-1: IPv6 http:80"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := make([]*discoveryv1.EndpointSlice, len(test.existing))
			for i, slice := range test.existing {
				before[i] = slice.DeepCopy()
			}
			changes := Plan(endpoints, test.existing, 10)
			var got []string
			for _, slice := range changes.Create {
				got = append(got, "create "+as(slice))
			}
			for _, slice := range changes.Update {
				got = append(got, "update "+as(slice))
			}
			for _, slice := range changes.Delete {
				got = append(got, "delete "+as(slice))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for _, updated := range changes.Update {
				want := right.DeepCopy()
				if strings.Contains(test.name, "recycled") {
					// It began as a creation. kube-controller-manager leaves that there too.
					want.GenerateName = "s-"
				}
				if diff := cmp.Diff(want, updated); diff != "" {
					t.Errorf("updated (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, test.existing); diff != "" {
				t.Errorf("the argument has changed:\n%s", diff)
			}
		})
	}
	terminating := endpoints.DeepCopy()
	terminating.DeletionTimestamp = new(metav1.Now())
	if got := Plan(terminating, nil, 10).Create; len(got) > 0 {
		t.Errorf("created for Endpoints that are being deleted: %q", briefs(got))
	}
}

func TestPlanWithMoreThanOneSliceHolds(t *testing.T) {
	// Two subsets whose ports are equal in all but the pointer.
	http := func() []corev1.EndpointPort {
		return []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: new("h2c")}}
	}
	endpoints := with(
		corev1.EndpointSubset{Addresses: addresses("10.0.0.1", "10.0.0.2"), Ports: http()},
		corev1.EndpointSubset{Addresses: addresses("10.0.0.3", "10.0.0.4"), Ports: http()})
	changes := Plan(endpoints, nil, 3)
	if len(changes.Create) != 1 || len(changes.Create[0].Endpoints) != 3 {
		t.Fatalf("created %q", briefs(changes.Create))
	}
	changes.Create[0].Name = "s-1"
	again := Plan(endpoints, changes.Create, 3)
	if len(again.Create)+len(again.Update)+len(again.Delete) > 0 {
		t.Errorf("written again: %+v", again)
	}
}
