// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// The names of a small cluster, so that things meet often.
var (
	serviceNames = []types.NamespacedName{named("s"), named("t"), kubernetesService, {Namespace: "other", Name: "s"}}
	sliceNames   = []types.NamespacedName{named("s-1"), named("s-2"), named("t-1"), named("kubernetes"), {Namespace: "other", Name: "s-1"}}
	ownerNames   = []string{"", "s", "s", "t", "absent", "kubernetes"}
	labelKeys    = []string{"zone1", "rack", corev1.LabelTopologyZone}
	annotations  = []string{
		"", "", zoneAnnotation, zoneAnnotation, `["rack"]`, `["rack","zone1"]`, `["zone1","rack"]`, `["zone1","*"]`,
		`["topology.kubernetes.io/zone"]`, `["rack","topology.kubernetes.io/zone"]`, `["absent","zone1"]`, `[]`, `broken`,
	}
)

// generator makes random objects. It draws in a fixed order: the same source
// makes the same objects.
type generator struct{ *rand.Rand }

func newGenerator(seed, stream uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // it is to be repeatable
}

// oneIn is true once in n times.
func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

func shuffled[T any](g generator, all []T) []T {
	all = slices.Clone(all)
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (g generator) labels() map[string]string {
	labels := map[string]string{}
	for _, key := range labelKeys {
		if value := pick(g, []string{"", "a", "b"}); value != "" {
			labels[key] = value
		}
	}
	return labels
}

func (g generator) kubernetesAnnotations() map[string]string {
	if g.oneIn(2) {
		return nil
	}
	return map[string]string{
		topology.LocalEndpointAnnotation: pick(g, []string{"127.0.0.9", "::9", "bad"}), topology.LocalPortAnnotation: "9443",
	}
}

func (g generator) service() *corev1.Service {
	name := pick(g, serviceNames)
	s := newService(name.Name, pick(g, annotations))
	s.Namespace = name.Namespace
	if s.Annotations != nil && g.oneIn(2) {
		s.Annotations[topology.TopologyPolicyAnnotation] = pick(g, []string{"ordered", "ordered", "union", "unknown"})
	}
	s.Spec.Type = corev1.ServiceType(pick(g, []string{"ClusterIP", "NodePort"}))
	if g.oneIn(4) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	}
	if g.oneIn(3) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	}
	return s
}

func (g generator) nodeNames() []string {
	var names []string
	for _, name := range slices.Concat(allNodes, []string{"-", "unknown"}) {
		if g.oneIn(2) {
			names = append(names, name)
		}
	}
	if g.oneIn(6) {
		return nil
	}
	return names
}

func (g generator) slice() *discoveryv1.EndpointSlice {
	name := pick(g, sliceNames)
	s := newSlice(name.Name, pick(g, ownerNames), g.nodeNames()...)
	s.Namespace = name.Namespace
	if g.oneIn(3) {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	if g.oneIn(3) {
		s.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80 + g.IntN(2)))}}
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if g.oneIn(2) {
			e.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(g.oneIn(2)), Terminating: ptr.To(g.oneIn(2)), Serving: ptr.To(g.oneIn(2))}
		}
		if g.oneIn(2) {
			e.Zone = ptr.To(pick(g, []string{"a", "b"}))
		}
		if g.oneIn(6) {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}}
		}
	}
	return s
}

func (g generator) endpoints() *corev1.Endpoints {
	name := pick(g, serviceNames)
	e := newEndpoints(name.Name, g.nodeNames()...)
	e.Namespace = name.Namespace
	if other := newEndpoints(name.Name, g.nodeNames()...); g.oneIn(2) {
		e.Subsets = append(e.Subsets, other.Subsets...)
	}
	for i := range e.Subsets {
		s := &e.Subsets[i]
		s.Ports = []corev1.EndpointPort{{Port: int32(80 + i)}}
		if g.oneIn(3) {
			s.Addresses, s.NotReadyAddresses = s.Addresses[:1], s.Addresses[1:]
		}
	}
	return e
}

// touch changes what no client acts on.
func (g generator) touch(obj object) {
	obj.SetGeneration(obj.GetGeneration() + int64(g.IntN(2)))
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: pick(g, []string{"x", "y"})}})
	annotations := map[string]string{}
	for key, value := range obj.GetAnnotations() {
		annotations[key] = value
	}
	annotations[corev1.EndpointsLastChangeTriggerTime] = pick(g, []string{"", "then", "now"})
	obj.SetAnnotations(annotations)
}
