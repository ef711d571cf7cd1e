// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// reference says what a View must show from what it has been told, and from
// what the domain watches that it opened have told it. It is computed anew after
// each event, without anything of the view but the calls that it makes.
type reference struct {
	// What the view was told.
	own        map[string]string // nil: nothing
	services   map[types.NamespacedName]*corev1.Service
	slices     map[types.NamespacedName]*discoveryv1.EndpointSlice
	endpoints  map[types.NamespacedName]*corev1.Endpoints
	kubernetes map[string]string // annotations of default/kubernetes
	local      *topology.LocalEndpoint

	servicesSynced, slicesSynced, endpointsSynced, kubernetesSynced bool

	// What is in force: the domains of the keys in use, and the policies of the
	// Services that have one.
	domains  map[string]*referenceDomain
	policies map[types.NamespacedName]topology.Policy
	// pending: there is a policy that is not in force.
	pending bool

	published, publishedEndpoints           bool
	wantServices, wantSlices, wantEndpoints contents
}

// contents are the objects of one resource by namespace and name.
type contents map[types.NamespacedName]object

func newReference(local *topology.LocalEndpoint) *reference {
	return &reference{
		local: local, kubernetesSynced: local != nil,
		services: map[types.NamespacedName]*corev1.Service{}, slices: map[types.NamespacedName]*discoveryv1.EndpointSlice{},
		endpoints: map[types.NamespacedName]*corev1.Endpoints{}, domains: map[string]*referenceDomain{},
		policies: map[types.NamespacedName]topology.Policy{},
	}
}

// settle follows the view over one event. open are its domain watches after it.
func (r *reference) settle(open []*fakeWatch) error {
	r.forgetDomains()
	r.settleDomains(open)
	r.settlePolicies()
	r.forgetDomains()
	if err := r.checkWatches(open); err != nil {
		return err
	}
	r.published = r.published || r.own != nil && r.servicesSynced && r.slicesSynced && r.kubernetesSynced && !r.pending
	r.publishedEndpoints = r.publishedEndpoints || r.published && r.endpointsSynced
	r.wantServices, r.wantSlices, r.wantEndpoints = r.expect(r)
	return nil
}

// expect filters what was told, by the policies in force.
func (r *reference) expect(loc topology.Locality) (wantServices, wantSlices, wantEndpoints contents) {
	wantServices, wantSlices, wantEndpoints = contents{}, contents{}, contents{}
	if r.published {
		for name, s := range r.services {
			wantServices[name] = s
		}
		for name, slice := range r.slices {
			if owner := ownerOf(slice); r.wantSlices[name] != nil || !r.waits(owner) {
				wantSlices[name] = r.filterSlice(slice, r.selection(loc, owner), loc)
			}
		}
	}
	if r.publishedEndpoints {
		for name, e := range r.endpoints {
			if r.wantEndpoints[name] != nil || !r.waits(name) {
				wantEndpoints[name] = r.filterEndpoints(e, r.selection(loc, name), loc)
			}
		}
	}
	return wantServices, wantSlices, wantEndpoints
}

func (r *reference) selection(loc topology.Locality, service types.NamespacedName) topology.Selection {
	var own []*discoveryv1.EndpointSlice
	for _, slice := range r.slices {
		if ownerOf(slice) == service {
			own = append(own, slice)
		}
	}
	return topology.Select(r.policies[service], loc, own)
}

// differs reports whether an object has other endpoints than upstream's, if it
// is one that the view could show.
func (r *reference) differs(gr schema.GroupResource, name types.NamespacedName) bool {
	var raw, filtered object
	switch gr {
	case EndpointSlices:
		slice := r.slices[name]
		if slice == nil {
			return false
		}
		owner := ownerOf(slice)
		raw, filtered = slice, r.filterSlice(slice, r.selection(r, owner), r)
	case Endpoints:
		e := r.endpoints[name]
		if e == nil {
			return false
		}
		raw, filtered = e, r.filterEndpoints(e, r.selection(r, name), r)
	}
	return viewContent(raw) != viewContent(filtered)
}

// waits: a new Service whose domains are not known yet has no policy that could
// hold. What the view does not have yet waits for it, the rest stays as it was.
func (r *reference) waits(name types.NamespacedName) bool {
	_, settled := r.policies[name]
	return r.services[name] != nil && !settled
}

func (r *reference) localEndpoint() *topology.LocalEndpoint {
	if r.local != nil {
		return r.local
	}
	local, err := topology.ParseLocalEndpoint(r.kubernetes)
	if err != nil {
		return nil
	}
	return local
}

func (r *reference) filterSlice(raw *discoveryv1.EndpointSlice, selection topology.Selection, loc topology.Locality) *discoveryv1.EndpointSlice {
	local := r.localEndpoint()
	if local == nil || ownerOf(raw) != kubernetesService {
		return selection.Slice(loc, raw)
	}
	var first string
	for name, slice := range r.slices {
		if ownerOf(slice) == kubernetesService && slice.AddressType == local.AddressType() && (first == "" || name.Name < first) {
			first = name.Name
		}
	}
	if first == "" {
		return selection.Slice(loc, raw)
	}
	return local.Slice(raw, raw.Name == first)
}

func (r *reference) filterEndpoints(raw *corev1.Endpoints, selection topology.Selection, loc topology.Locality) *corev1.Endpoints {
	name := nameOf(&raw.ObjectMeta)
	if local := r.localEndpoint(); local != nil && name == kubernetesService {
		return local.Endpoints(raw)
	}
	family := discoveryv1.AddressTypeIPv4
	if s := r.services[name]; s != nil && len(s.Spec.IPFamilies) > 0 && s.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		family = discoveryv1.AddressTypeIPv6
	}
	return selection.Endpoints(loc, family, raw)
}

// ownerOf returns the name of the Service of a slice, the zero value without one.
func ownerOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	if name := slice.Labels[discoveryv1.LabelServiceName]; name != "" {
		return types.NamespacedName{Namespace: slice.Namespace, Name: name}
	}
	return types.NamespacedName{}
}

// policyOf returns the policy that a Service asks for; a malformed one asks for
// nothing.
func policyOf(s *corev1.Service) topology.Policy {
	policy, err := topology.ParsePolicy(s.Annotations)
	if err != nil {
		return topology.Policy{}
	}
	return policy
}

// byDefinition filters what was told by the labels of all nodes and by all
// policies, as it is to be when everything has come to rest.
func (r *reference) byDefinition(nodes map[string]map[string]string) (wantServices, wantSlices, wantEndpoints contents) {
	settled := *r
	settled.policies = map[types.NamespacedName]topology.Policy{}
	for name, s := range r.services {
		settled.policies[name] = policyOf(s)
	}
	return settled.expect(byLabels{own: r.own, nodes: nodes})
}

func sameContents(got, want contents) error {
	if g, w := sortedNames(got), sortedNames(want); !slices.Equal(g, w) {
		return fmt.Errorf("got %v, want %v", g, w)
	}
	for name, obj := range want {
		if viewContent(got[name]) != viewContent(obj) {
			return fmt.Errorf("%T %s:\ngot  %v\nwant %v", obj, name, got[name], obj)
		}
	}
	return nil
}
