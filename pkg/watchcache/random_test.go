// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

var (
	randomRuns = flag.Int("random", 60, "number of random interleavings")
	randomSeed = flag.Uint64("seed", 0, "replay the random interleaving with this seed alone")
)

// TestViewEqualsTheFilteredUpstream runs random interleavings of everything
// that can happen upstream, and compares the view with what package topology
// makes of upstream's objects whenever all domains are up to date. Recording
// clients check order, uniqueness and completeness of the events.
func TestViewEqualsTheFilteredUpstream(t *testing.T) {
	if *randomSeed != 0 {
		interleave(t, *randomSeed)
		return
	}
	for range *randomRuns {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { interleave(t, seed) }) {
			t.Fatalf("replay with: go test ./pkg/watchcache -run TestViewEqualsTheFilteredUpstream -seed=%d", seed)
		}
	}
}

// upstreamModel is what upstream has.
type upstreamModel struct {
	*fixture
	rand      *rand.Rand
	own       map[string]string // the last labels of the own Node
	services  map[types.NamespacedName]*corev1.Service
	slices    map[types.NamespacedName]*discoveryv1.EndpointSlice
	endpoints map[types.NamespacedName]*corev1.Endpoints
	kube      map[string]string
	revision  int
}

// Label and Member make the model a topology.Locality over the true labels.
func (m *upstreamModel) Label(key string) (string, bool) {
	value, ok := m.own[key]
	return value, ok
}

func (m *upstreamModel) Member(key, nodeName string) bool {
	own, ok := m.own[key]
	if !ok {
		return false
	}
	if nodeName == ownNode {
		return true
	}
	value, ok := m.nodes[nodeName][key]
	return ok && value == own
}

func interleave(t *testing.T, seed uint64) {
	m := &upstreamModel{
		fixture: newFixture(t, nil), rand: rand.New(rand.NewPCG(seed, 1)),
		services: map[types.NamespacedName]*corev1.Service{}, slices: map[types.NamespacedName]*discoveryv1.EndpointSlice{},
		endpoints: map[types.NamespacedName]*corev1.Endpoints{},
	}
	records := []*recorder{m.record("services"), m.record("endpointslices"), m.record("endpoints")}
	for range 20 {
		m.step()
	}
	m.setOwn(map[string]string{"zone1": "a"})
	m.relistServices()
	m.relistSlices()
	m.relistEndpoints()
	m.view.SetKubernetesAnnotations(m.kube)
	for round := range 40 {
		for range m.rand.IntN(8) {
			m.step()
		}
		m.deliver()
		m.check(round, records)
	}
}

func (m *upstreamModel) pick(values ...string) string { return values[m.rand.IntN(len(values))] }

func (m *upstreamModel) setOwn(labels map[string]string) {
	m.nodes[ownNode], m.own = labels, labels
	m.view.SetOwnLabels(labels)
}

// step lets one thing happen upstream. Domain watches see it at once, later or
// at the next check.
func (m *upstreamModel) step() {
	m.revision++
	switch m.rand.IntN(20) {
	case 0, 1, 2:
		labels := m.randomLabels()
		name := allNodes[1+m.rand.IntN(len(allNodes)-1)]
		m.nodes[name] = labels
	case 3:
		delete(m.nodes, m.pick(allNodes...))
	case 4, 5:
		if m.own != nil {
			m.setOwn(m.randomLabels())
		}
	case 6, 7, 8:
		s := m.randomService()
		m.services[nameOf(&s.ObjectMeta)] = s
		m.view.SetService(s)
	case 9:
		name := types.NamespacedName{Namespace: "default", Name: m.pick(serviceNames...)}
		delete(m.services, name)
		m.view.DeleteService(name)
	case 10, 11, 12:
		s := m.randomSlice()
		m.slices[nameOf(&s.ObjectMeta)] = s
		m.view.SetEndpointSlice(s)
	case 13:
		name := types.NamespacedName{Namespace: "default", Name: m.pick(sliceNames...)}
		delete(m.slices, name)
		m.view.DeleteEndpointSlice(name)
	case 14, 15:
		e := m.randomEndpoints()
		m.endpoints[nameOf(&e.ObjectMeta)] = e
		m.view.SetEndpoints(e)
	case 16:
		name := types.NamespacedName{Namespace: "default", Name: m.pick(serviceNames...)}
		delete(m.endpoints, name)
		m.view.DeleteEndpoints(name)
	case 17:
		m.relist()
	case 18:
		if len(m.domains.watches) > 0 {
			if w := m.domains.watches[m.rand.IntN(len(m.domains.watches))]; !w.stopped {
				// A relist of the domain: everything at once.
				w.synced = false
				m.sync(w)
			}
		}
	case 19:
		m.kube = nil
		if m.rand.IntN(2) == 0 {
			m.kube = map[string]string{topology.LocalEndpointAnnotation: m.pick("127.0.0.9", "::9", "bad"), topology.LocalPortAnnotation: "9443"}
		}
		if m.own != nil {
			m.view.SetKubernetesAnnotations(m.kube)
		}
	}
	if m.rand.IntN(4) == 0 {
		m.deliver()
	}
}

// relist tells everything anew, after changes that nobody was told of, and with
// revisions that begin again.
func (m *upstreamModel) relist() {
	if m.own == nil {
		return
	}
	m.revision = 0
	for range m.rand.IntN(4) {
		s, e, svc := m.randomSlice(), m.randomEndpoints(), m.randomService()
		m.slices[nameOf(&s.ObjectMeta)] = s
		m.endpoints[nameOf(&e.ObjectMeta)] = e
		m.services[nameOf(&svc.ObjectMeta)] = svc
		delete(m.slices, types.NamespacedName{Namespace: "default", Name: m.pick(sliceNames...)})
		delete(m.services, types.NamespacedName{Namespace: "default", Name: m.pick(serviceNames...)})
		delete(m.endpoints, types.NamespacedName{Namespace: "default", Name: m.pick(serviceNames...)})
	}
	m.relistServices()
	m.relistSlices()
	m.relistEndpoints()
}

func (m *upstreamModel) relistServices() {
	m.view.ReplaceServices(slices.Collect(maps.Values(m.services)))
}

func (m *upstreamModel) relistSlices() {
	m.view.ReplaceEndpointSlices(slices.Collect(maps.Values(m.slices)))
}

func (m *upstreamModel) relistEndpoints() {
	m.view.ReplaceEndpoints(slices.Collect(maps.Values(m.endpoints)))
}

var (
	serviceNames = []string{"s", "t", "u", "kubernetes"}
	sliceNames   = []string{"s-1", "s-2", "t-1", "x", "kubernetes"}
)

func (m *upstreamModel) randomLabels() map[string]string {
	labels := map[string]string{}
	for _, key := range []string{"zone1", "rack", corev1.LabelTopologyZone} {
		if value := m.pick("", "a", "b"); value != "" {
			labels[key] = value
		}
	}
	return labels
}

func (m *upstreamModel) randomService() *corev1.Service {
	s := newService(m.pick(serviceNames...), m.pick("", "", zoneAnnotation, zoneAnnotation, `["rack"]`, `["rack","zone1"]`, `["zone1","*"]`, `["topology.kubernetes.io/zone"]`, `[]`, `broken`))
	if s.Annotations != nil && m.rand.IntN(3) == 0 {
		s.Annotations[topology.TopologyPolicyAnnotation] = m.pick("ordered", "ordered", "union", "unknown")
	}
	s.ResourceVersion = strconv.Itoa(m.revision)
	s.Spec.Type = corev1.ServiceType(m.pick("ClusterIP", "NodePort"))
	if m.rand.IntN(4) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	}
	return s
}

func (m *upstreamModel) randomNodes() []string {
	var nodes []string
	for _, name := range append(slices.Clone(allNodes), "-", "unknown") {
		if m.rand.IntN(2) == 0 {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

func (m *upstreamModel) randomSlice() *discoveryv1.EndpointSlice {
	s := newSlice(m.pick(sliceNames...), m.pick("", "s", "s", "t", "u", "kubernetes"), m.randomNodes()...)
	s.ResourceVersion = strconv.Itoa(m.revision)
	if m.rand.IntN(4) == 0 {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if m.rand.IntN(2) == 0 {
			e.Conditions.Ready = ptr.To(m.rand.IntN(2) == 0)
			e.Conditions.Terminating = ptr.To(m.rand.IntN(2) == 0)
			e.Conditions.Serving = ptr.To(m.rand.IntN(2) == 0)
		}
		if m.rand.IntN(2) == 0 {
			e.Zone = ptr.To(m.pick("a", "b"))
		}
	}
	return s
}

func (m *upstreamModel) randomEndpoints() *corev1.Endpoints {
	e := newEndpoints(m.pick(serviceNames...), m.randomNodes()...)
	e.ResourceVersion = strconv.Itoa(m.revision)
	return e
}

// selection computes what the view should decide for a Service.
func (m *upstreamModel) selection(name types.NamespacedName) topology.Selection {
	s := m.services[name]
	if s == nil {
		return topology.Selection{}
	}
	policy, err := topology.ParsePolicy(s.Annotations)
	if err != nil {
		return topology.Selection{}
	}
	var own []*discoveryv1.EndpointSlice
	for _, slice := range m.slices {
		if owner, ok := serviceOf(slice); ok && owner == name {
			own = append(own, slice)
		}
	}
	return topology.Select(policy, m, own)
}

func (m *upstreamModel) wantSlice(raw *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	owner, ok := serviceOf(raw)
	if !ok {
		return raw
	}
	if local, err := topology.ParseLocalEndpoint(m.kube); err == nil && local != nil && owner == kubernetesService {
		first := ""
		for name, slice := range m.slices {
			if o, ok := serviceOf(slice); ok && o == owner && slice.AddressType == local.AddressType() && (first == "" || name.Name < first) {
				first = name.Name
			}
		}
		if first != "" {
			return local.Slice(raw, raw.Name == first)
		}
	}
	return m.selection(owner).Slice(m, raw)
}

func (m *upstreamModel) wantEndpointsOf(raw *corev1.Endpoints) *corev1.Endpoints {
	name := nameOf(&raw.ObjectMeta)
	if local, err := topology.ParseLocalEndpoint(m.kube); err == nil && local != nil && name == kubernetesService {
		return local.Endpoints(raw)
	}
	return m.selection(name).Endpoints(m, primaryFamily(m.services[name]), raw)
}

// check compares the view, and what each recording client made of its watch,
// with what they should be.
func (m *upstreamModel) check(round int, records []*recorder) {
	m.t.Helper()
	want := []map[string]runtime.Object{{}, {}, {}}
	for name, s := range m.services {
		want[0][name.Name] = s
	}
	for name, s := range m.slices {
		want[1][name.Name] = m.wantSlice(s)
	}
	for name, e := range m.endpoints {
		want[2][name.Name] = m.wantEndpointsOf(e)
	}
	got := []map[string]runtime.Object{{}, {}, {}}
	for _, s := range m.listServices() {
		got[0][s.Name] = &s
	}
	for _, s := range m.listSlices() {
		got[1][s.Name] = &s
	}
	for _, e := range m.listEndpoints() {
		got[2][e.Name] = &e
	}
	for i, record := range records {
		record.catchUp()
		for what, have := range map[string]map[string]runtime.Object{"LIST": got[i], "watch": record.state} {
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want[i])), slices.Sorted(maps.Keys(have))); diff != "" {
				m.t.Fatalf("round %d: %s by %s (-want +got):\n%s", round, record.resource, what, diff)
			}
			for name, obj := range want[i] {
				if !viewEqual(obj, have[name]) {
					m.t.Fatalf("round %d: %s %s by %s differs from the filtered upstream (-want +got):\n%s", round, record.resource, name, what, cmp.Diff(obj, have[name]))
				}
			}
		}
		for name, obj := range got[i] {
			if diff := cmp.Diff(obj, record.state[name]); diff != "" {
				m.t.Fatalf("round %d: %s %s: LIST and watch differ (-list +watch):\n%s", round, record.resource, name, diff)
			}
		}
	}
}
