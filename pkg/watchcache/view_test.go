// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

const zoneAnnotation = `["zone1"]`

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func (f *fixture) wantSlices(what string, want map[string][]string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.slicesView()); diff != "" {
		f.t.Errorf("%s: slices (-want +got):\n%s", what, diff)
	}
}

func (f *fixture) wantEndpoints(what string, want map[string][]string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.endpointsView()); diff != "" {
		f.t.Errorf("%s: endpoints (-want +got):\n%s", what, diff)
	}
}

func TestEndpointWithoutNodeNameIsHiddenWhileTheServiceIsFiltered(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "-", "n2", "n3", "n4"))
	f.view.SetEndpoints(newEndpoints("s", "-", "n2", "n3", "n4"))
	f.deliver()
	f.wantSlices("filtered", map[string][]string{"s-1": {"n2"}})
	f.wantEndpoints("filtered", map[string][]string{"s": {"n2"}})
	f.view.SetService(newService("s", ""))
	f.wantSlices("annotation removed", map[string][]string{"s-1": {"-", "n2", "n3", "n4"}})
	f.wantEndpoints("annotation removed", map[string][]string{"s": {"-", "n2", "n3", "n4"}})
}

func TestSlicesBelongToTheServiceInTheirLabel(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetService(newService("s-foo", ""))
	f.view.SetEndpointSlice(newSlice("zzz", "s", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-foo-bar", "s", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-abcde", "", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-foo-1", "s-foo", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("absent-1", "absent", "n1", "n3"))
	f.deliver()
	f.wantSlices("", map[string][]string{
		"zzz": {"n1"}, "s-foo-bar": {"n1"},
		"s-abcde": {"n1", "n3"}, "s-foo-1": {"n1", "n3"}, "absent-1": {"n1", "n3"},
	})
	f.view.SetEndpointSlice(newSlice("zzz", "s-foo", "n1", "n3"))
	f.view.SetService(newService("absent", zoneAnnotation))
	f.view.DeleteService(named("s"), "")
	f.wantSlices("after changes", map[string][]string{
		"zzz": {"n1", "n3"}, "s-foo-bar": {"n1", "n3"},
		"s-abcde": {"n1", "n3"}, "s-foo-1": {"n1", "n3"}, "absent-1": {"n1"},
	})
}

func TestEveryOrderOfArrivalEndsInTheSameView(t *testing.T) {
	steps := map[string]func(*fixture){
		"node": func(f *fixture) { f.setNode("n2", map[string]string{"zone1": "a"}) },
		"service": func(f *fixture) {
			f.view.SetService(newService("s", zoneAnnotation))
			f.deliver()
		},
		"slice": func(f *fixture) {
			f.view.SetEndpointSlice(newSlice("s-1", "s", "n2", "n3"))
			f.view.SetEndpoints(newEndpoints("s", "n2", "n3"))
		},
	}
	orders := [][]string{
		{"node", "service", "slice"}, {"node", "slice", "service"}, {"service", "node", "slice"},
		{"service", "slice", "node"}, {"slice", "node", "service"}, {"slice", "service", "node"},
	}
	for _, order := range orders {
		f := newFixture(t, nil)
		f.setNode("n1", map[string]string{"zone1": "a"})
		f.setNode("n3", map[string]string{"zone1": "b"})
		f.start()
		r := f.record("endpointslices")
		for _, step := range order {
			steps[step](f)
		}
		f.wantSlices(fmt.Sprint(order), map[string][]string{"s-1": {"n2"}})
		f.wantEndpoints(fmt.Sprint(order), map[string][]string{"s": {"n2"}})
		r.catchUp()
		if got := r.state["s-1"].(*discoveryv1.EndpointSlice).Endpoints; len(got) != 1 || *got[0].NodeName != "n2" {
			t.Errorf("%v: the watch ends with %v", order, got)
		}
	}
}

func TestChangesReachOnlyTheAffectedObjects(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetService(newService("other", `["rack"]`))
	f.view.SetService(newService("plain", ""))
	for _, name := range []string{"s", "other", "plain"} {
		f.view.SetEndpointSlice(newSlice(name+"-1", name, "n1", "n2", "n3"))
	}
	f.deliver()
	f.wantSlices("at first", map[string][]string{"s-1": {"n1", "n2"}, "other-1": {}, "plain-1": {"n1", "n2", "n3"}})
	slices, services := f.record("endpointslices"), f.record("services")
	for _, s := range f.listSlices() {
		slices.state[s.Name] = &s
	}
	for _, s := range f.listServices() {
		services.state[s.Name] = &s
	}
	steps := []struct {
		name                       string
		step                       func()
		wantSlices, wantServices   []string
		wantEndpointsOfTheAffected []string
	}{
		{name: "annotation removed", step: func() { f.view.SetService(newService("s", "")) },
			wantSlices: []string{"MODIFIED s-1"}, wantServices: []string{"MODIFIED s"}},
		{name: "annotation added", step: func() { f.view.SetService(newService("s", zoneAnnotation)); f.deliver() },
			wantSlices: []string{"MODIFIED s-1"}, wantServices: []string{"MODIFIED s"}},
		{name: "other node enters", step: func() { f.setNode("n3", map[string]string{"zone1": "a"}) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "other label changes", step: func() { f.setNode("n3", map[string]string{"zone1": "a", "x": "y"}) }},
		{name: "node without endpoints enters", step: func() { f.setNode("n5", map[string]string{"zone1": "a"}) }},
		{name: "own label lost", step: func() { f.setNode("n1", map[string]string{}) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "own label back", step: func() { f.setNode("n1", map[string]string{"zone1": "a"}) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "own node deleted", step: func() { f.setNode("n1", nil) }},
		{name: "own node back", step: func() { f.setNode("n1", map[string]string{"zone1": "a"}) }},
		{name: "node deleted", step: func() { f.setNode("n2", nil) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "node back", step: func() { f.setNode("n2", map[string]string{"zone1": "a"}) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "heartbeat of the slice", step: func() {
			s := newSlice("s-1", "s", "n1", "n2", "n3")
			s.ResourceVersion, s.Generation = "2", 2
			s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "now"}
			f.view.SetEndpointSlice(s)
		}},
		{name: "churn in another unit", step: func() {
			f.setNode("n3", map[string]string{"zone1": "b"})
			slices.catchUp()
			f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n2"))
			f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n2", "n3"))
		}},
		{name: "last match leaves", step: func() { f.view.SetEndpointSlice(newSlice("s-1", "s", "n3")) }, wantSlices: []string{"MODIFIED s-1"}},
		{name: "slice deleted", step: func() { f.view.DeleteEndpointSlice(named("s-1"), "") }, wantSlices: []string{"DELETED s-1"}},
	}
	for _, step := range steps {
		step.step()
		if diff := cmp.Diff(step.wantSlices, slices.catchUp()); diff != "" {
			t.Errorf("%s: events of slices (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.wantServices, services.catchUp()); diff != "" {
			t.Errorf("%s: events of services (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestDiffersTellsFilteredObjects(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-2", "s", "n1", "n2"))
	f.view.SetEndpointSlice(newSlice("s-3", "s", "n3"))
	f.view.SetEndpointSlice(newSlice("plain", "", "n3"))
	f.view.SetEndpoints(newEndpoints("s", "n1", "n3"))
	f.view.SetEndpoints(newEndpoints("plain", "n1", "n3"))
	f.deliver()
	differs := func() map[string]bool {
		got := map[string]bool{}
		for _, name := range []string{"s-1", "s-2", "s-3", "plain", "absent"} {
			got["slice "+name], _ = f.view.Differs(EndpointSlices, "default", name)
		}
		for _, name := range []string{"s", "plain", "absent"} {
			got["endpoints "+name], _ = f.view.Differs(Endpoints, "default", name)
		}
		got["service s"], _ = f.view.Differs(Services, "default", "s")
		return got
	}
	want := map[string]bool{
		"slice s-1": true, "slice s-2": false, "slice s-3": true, "slice plain": false, "slice absent": false,
		"endpoints s": true, "endpoints plain": false, "endpoints absent": false, "service s": false,
	}
	if diff := cmp.Diff(want, differs()); diff != "" {
		t.Errorf("filtered (-want +got):\n%s", diff)
	}
	f.view.SetService(newService("s", ""))
	for what, differs := range differs() {
		if differs {
			t.Errorf("%s differs though nothing is filtered", what)
		}
	}
}

func TestNothingLeftIsAnEmptyListNotNull(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n3", "n4"))
	f.view.SetEndpoints(newEndpoints("s", "n3", "n4"))
	f.deliver()
	for _, s := range f.listSlices() {
		if s.Endpoints == nil || len(s.Endpoints) > 0 {
			t.Errorf("slice %s has endpoints %#v, want an empty list", s.Name, s.Endpoints)
		}
	}
	for _, e := range f.listEndpoints() {
		if len(e.Subsets) != 0 {
			t.Errorf("Endpoints %s has subsets %v", e.Name, e.Subsets)
		}
	}
}

func TestNewDomainIsSyncedBeforeItReplacesTheOldOne(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n2", "n3"))
	f.deliver()
	f.nodes["n1"] = map[string]string{"zone1": "b"}
	r := f.record("endpointslices")
	f.view.SetOwnLabels(f.nodes["n1"])
	f.wantSlices("before the new domain is synced", map[string][]string{"s-1": {"n1", "n2"}})
	f.deliver()
	f.wantSlices("after", map[string][]string{"s-1": {"n1", "n3"}})
	r.state["s-1"] = &discoveryv1.EndpointSlice{}
	if diff := cmp.Diff([]string{"MODIFIED s-1"}, r.catchUp()); diff != "" {
		t.Errorf("the switch is not one step (-want +got):\n%s", diff)
	}
	open := 0
	for _, w := range f.domains.watches {
		if !w.stopped {
			open++
		}
	}
	if open != 1 {
		t.Errorf("%d domain watches are open, want 1", open)
	}
}

func TestPolicyWithAnUnknownDomainWaitsForIt(t *testing.T) {
	f := standard(t)
	f.setNode("n1", map[string]string{"zone1": "a", "rack": "r1"})
	f.nodes["n3"]["rack"] = "r1"
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n2", "n3"))
	f.view.SetService(newService("s", zoneAnnotation))
	f.deliver()
	f.view.SetService(newService("s", `["rack"]`))
	f.wantSlices("the old policy holds", map[string][]string{"s-1": {"n1", "n2"}})
	f.deliver()
	f.wantSlices("the new policy holds", map[string][]string{"s-1": {"n1", "n3"}})
}

func TestNewServiceWithAnUnknownDomainShowsNothingBeforeItIsKnown(t *testing.T) {
	f := standard(t)
	f.setNode("n1", map[string]string{"zone1": "a", "rack": "r1"})
	f.view.SetEndpointSlice(newSlice("early", "s", "n1", "n3"))
	f.view.SetService(newService("s", `["rack"]`))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n3"))
	f.view.SetEndpoints(newEndpoints("s", "n1", "n3"))
	f.wantSlices("domain unknown", map[string][]string{"early": {"n1", "n3"}})
	f.wantEndpoints("domain unknown", map[string][]string{})
	f.deliver()
	f.wantSlices("domain known", map[string][]string{"early": {"n1"}, "s-1": {"n1"}})
	f.wantEndpoints("domain known", map[string][]string{"s": {"n1"}})

	f.view.DeleteService(named("s"), "")
	f.wantSlices("deleted", map[string][]string{"early": {"n1", "n3"}, "s-1": {"n1", "n3"}})
	f.view.SetService(newService("s", ""))
	f.view.SetEndpointSlice(newSlice("s-2", "s", "n1", "n3"))
	f.wantSlices("unfiltered again", map[string][]string{"early": {"n1", "n3"}, "s-1": {"n1", "n3"}, "s-2": {"n1", "n3"}})
}

func TestOneEventChangesAnObjectOnce(t *testing.T) {
	ordered := newService("s", `["host","zone1"]`)
	ordered.Annotations[topology.TopologyPolicyAnnotation] = "ordered"
	f := standard(t)
	f.setNode("n1", map[string]string{"zone1": "a", "host": "n1", "rack": "r1"})
	f.setNode("n2", map[string]string{"zone1": "a", "rack": "r1"})
	f.view.SetService(ordered)
	f.view.SetService(newService("u", `["zone1","rack"]`))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1"))
	f.view.SetEndpointSlice(newSlice("s-2", "s", "n3"))
	f.view.SetEndpointSlice(newSlice("s-3", "s", "n2"))
	f.view.SetEndpointSlice(newSlice("u-1", "u", "n1", "n2", "n3"))
	f.deliver()
	f.wantSlices("at first", map[string][]string{"s-1": {"n1"}, "s-2": {}, "s-3": {}, "u-1": {"n1", "n2"}})
	r := f.record("endpointslices")
	for _, s := range f.listSlices() {
		r.state[s.Name] = &s
	}
	// While the link was down the Pod on n1 moved to another slice.
	f.view.ReplaceEndpointSlices([]*discoveryv1.EndpointSlice{
		newSlice("s-1", "s"), newSlice("s-2", "s", "n3", "n1"), newSlice("s-3", "s", "n2"), newSlice("u-1", "u", "n1", "n2", "n3"),
	})
	if diff := cmp.Diff([]string{"MODIFIED s-1", "MODIFIED s-2"}, r.catchUp()); diff != "" {
		t.Errorf("relist (-want +got):\n%s", diff)
	}
	f.setNode("n1", map[string]string{"host": "n1"})
	if diff := cmp.Diff([]string{"MODIFIED u-1"}, r.catchUp()); diff != "" {
		t.Errorf("two labels lost at once (-want +got):\n%s", diff)
	}
}

func TestWatchesAreBoundedByTheLabelsOfTheOwnNode(t *testing.T) {
	f := standard(t)
	for _, annotation := range []string{`["a","b","c"]`, `["d","zone1"]`, `["*"]`, `["kubernetes.io/hostname"]`} {
		f.view.SetService(newService("s"+annotation[2:3], annotation))
	}
	f.deliver()
	if len(f.domains.watches) != 1 || f.domains.watches[0].key != "zone1" {
		t.Errorf("watches: %v, want one of zone1", f.domains.watches)
	}
	f.view.SetService(newService("sd", ""))
	if !f.domains.watches[0].stopped {
		t.Error("the watch of a key that no Service names goes on")
	}
}

func TestNothingIsShownBeforeTheOwnNodeIsKnown(t *testing.T) {
	f := newFixture(t, nil)
	f.view.ReplaceServices([]*corev1.Service{newService("s", zoneAnnotation)})
	f.view.ReplaceEndpointSlices([]*discoveryv1.EndpointSlice{newSlice("s-1", "s", "n1", "n3")})
	f.view.ReplaceEndpoints([]*corev1.Endpoints{newEndpoints("s", "n1", "n3")})
	f.view.SetKubernetesAnnotations(nil)
	if synced := f.view.Synced(); synced.OwnNode || isClosed(f.view.Filled()) || synced.Domains {
		t.Errorf("Synced = %+v before the own Node is known", synced)
	}
	f.wantSlices("own Node unknown", map[string][]string{})
	f.view.SetOwnLabels(map[string]string{"zone1": "a"})
	f.wantSlices("domain unknown", map[string][]string{})
	f.nodes["n1"] = map[string]string{"zone1": "a"}
	f.deliver()
	f.wantSlices("all known", map[string][]string{"s-1": {"n1"}})
	f.wantEndpoints("all known", map[string][]string{"s": {"n1"}})
	if synced := f.view.Synced(); !isClosed(f.view.Filled()) || !isClosed(f.view.FilledEndpoints()) || !synced.Domains {
		t.Errorf("Synced = %+v when all is known", synced)
	}
}

func TestRelistChangesTheViewByTheDifference(t *testing.T) {
	f := standard(t)
	f.view.SetService(newService("s", zoneAnnotation))
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-2", "s", "n1", "n3"))
	f.view.SetEndpointSlice(newSlice("s-3", "s", "n1", "n3"))
	f.deliver()
	r := f.record("endpointslices")
	for _, s := range f.listSlices() {
		r.state[s.Name] = &s
	}
	// s-1 is as it was, s-2 has other contents under the same revision, s-3 is
	// gone, s-4 is new.
	f.view.ReplaceEndpointSlices([]*discoveryv1.EndpointSlice{
		newSlice("s-1", "s", "n1", "n3"), newSlice("s-2", "s", "n1", "n2", "n3"), newSlice("s-4", "s", "n1"),
	})
	if diff := cmp.Diff([]string{"MODIFIED s-2", "ADDED s-4", "DELETED s-3"}, r.catchUp()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	f.view.ReplaceServices([]*corev1.Service{})
	f.wantSlices("Service gone", map[string][]string{"s-1": {"n1", "n3"}, "s-2": {"n1", "n2", "n3"}, "s-4": {"n1"}})
}

func TestMalformedAnnotationDoesNotFilter(t *testing.T) {
	for _, annotation := range []string{`zone1`, `["zone1"`, `"zone1"`, `[1]`, `[""]`, `["zone 1"]`} {
		f := standard(t)
		f.view.SetService(newService("s", annotation))
		f.view.SetEndpointSlice(newSlice("s-1", "s", "n1", "n3"))
		f.deliver()
		f.wantSlices(annotation, map[string][]string{"s-1": {"n1", "n3"}})
		f.view.SetService(newService("s", zoneAnnotation))
		f.deliver()
		f.wantSlices("repaired "+annotation, map[string][]string{"s-1": {"n1"}})
	}
}

func TestOrderedPolicyDecidesOverAllSlices(t *testing.T) {
	f := standard(t)
	f.setNode("n1", map[string]string{"zone1": "a", "host": "n1"})
	f.setNode("n2", map[string]string{"zone1": "a", "host": "n2"})
	s := newService("s", `["host","zone1"]`)
	s.Annotations[topology.TopologyPolicyAnnotation] = "ordered"
	f.view.SetService(s)
	f.view.SetEndpointSlice(newSlice("s-1", "s", "n2"))
	f.view.SetEndpointSlice(newSlice("s-2", "s", "n1", "n3"))
	f.deliver()
	f.wantSlices("own node ready", map[string][]string{"s-1": {}, "s-2": {"n1"}})
	unready := newSlice("s-2", "s", "n1", "n3")
	ready := false
	unready.Endpoints[0].Conditions.Ready = &ready
	f.view.SetEndpointSlice(unready)
	f.wantSlices("own node unready", map[string][]string{"s-1": {"n2"}, "s-2": {"n1"}})
	f.view.DeleteEndpointSlice(named("s-2"), "")
	f.wantSlices("slice deleted", map[string][]string{"s-1": {"n2"}})
}

func TestLocalEndpointReplacesThoseOfKubernetes(t *testing.T) {
	annotations := map[string]string{topology.LocalEndpointAnnotation: "127.0.0.9", topology.LocalPortAnnotation: "9443"}
	kubernetes := func(f *fixture) {
		f.view.SetService(newService("kubernetes", ""))
		s := newSlice("kubernetes", "kubernetes", "-")
		f.view.SetEndpointSlice(s)
		f.view.SetEndpoints(newEndpoints("kubernetes", "-"))
	}
	address := func(f *fixture) [2]string {
		var got [2]string
		for _, s := range f.listSlices() {
			for _, e := range s.Endpoints {
				got[0] += e.Addresses[0]
			}
		}
		for _, e := range f.listEndpoints() {
			for _, subset := range e.Subsets {
				got[1] += subset.Addresses[0].IP
			}
		}
		return got
	}
	f := standard(t)
	kubernetes(f)
	steps := []struct {
		name        string
		annotations map[string]string
		want        string
	}{
		{"none", nil, "10.0.0.1"},
		{"set", annotations, "127.0.0.9"},
		{"bad address", map[string]string{topology.LocalEndpointAnnotation: "here", topology.LocalPortAnnotation: "1"}, "10.0.0.1"},
		{"set again", annotations, "127.0.0.9"},
		{"removed", nil, "10.0.0.1"},
	}
	for _, step := range steps {
		f.view.SetKubernetesAnnotations(step.annotations)
		if got := address(f); got != [2]string{step.want, step.want} {
			t.Errorf("%s: slice and Endpoints have %v, want %s", step.name, got, step.want)
		}
	}

	flag, err := topology.ParseHostPort("127.0.0.8:443")
	if err != nil {
		t.Fatal(err)
	}
	f = newFixture(t, flag)
	f.setNode("n1", map[string]string{})
	f.start()
	kubernetes(f)
	f.view.SetKubernetesAnnotations(annotations)
	if got := address(f); got != [2]string{"127.0.0.8", "127.0.0.8"} {
		t.Errorf("with the flag: slice and Endpoints have %v", got)
	}
}
