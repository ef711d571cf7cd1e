// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// kubernetesService is the Service whose endpoints a local endpoint may replace.
var kubernetesService = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// ViewConfig is what a View is made of. All fields but LocalEndpoint are required.
type ViewConfig struct {
	// NodeName is the name of the Node whose view this is.
	NodeName string
	// Services, EndpointSlices and Endpoints receive the view. Each counts its
	// own revisions, from Revisions.Start().
	Services, EndpointSlices, Endpoints *memory.Store
	// Revisions guards the revisions that the stores hand out.
	Revisions *Revisions
	// Domains follows the Nodes that share a label with this node.
	Domains DomainWatcher
	// LocalEndpoint, if not nil, replaces the endpoints of default/kubernetes
	// whatever the annotations of the Endpoints object say.
	LocalEndpoint *topology.LocalEndpoint
}

// View is the state machine that turns upstream's objects into the view of one
// node. Its methods may be called concurrently; each processes its event to the
// end before it returns. Objects handed in belong to the View and are not to be
// written any more.
type View struct {
	logger        klog.Logger
	nodeName      string
	revisions     *Revisions
	domains       DomainWatcher
	localEndpoint *topology.LocalEndpoint

	// mu serialises the events. It is held over Apply, which never waits for
	// readers, and over the start of a domain watch, which does not block.
	mu sync.Mutex

	// labels are the labels of the own Node, nil until they are known.
	labels map[string]string
	// keys are the topology keys that the policies name.
	keys map[string]*topologyKey

	services       map[types.NamespacedName]*service
	slices         map[types.NamespacedName]*slice
	endpoints      map[types.NamespacedName]*endpoints
	malformed      int
	annotated      *topology.LocalEndpoint // of default/kubernetes
	annotatedError string                  // the last error logged for it

	synced Synced
	// published is set, for good, when everything that the first view is made
	// of is there. Nothing is written to the stores before.
	published          bool
	publishedEndpoints bool
	// filled and filledEndpoints are closed when the stores hold the first view.
	filled, filledEndpoints chan struct{}

	// What the event under way has touched. Decisions and objects are made anew
	// once, when all of the event is known: inside an event there are states
	// that never were, as when a relist moves a Pod from one slice to another.
	touchedServices  []*service
	touchedSlices    []*slice
	touchedEndpoints []*endpoints

	servicesOut, slicesOut, endpointsOut outbox

	// changed wakes those that wait for the view to come to a write.
	changed broadcast
}

// Synced tells what a View has seen of its inputs.
type Synced struct {
	// OwnNode: the labels of the own Node are known.
	OwnNode bool
	// Services, EndpointSlices, Endpoints: the first list was seen.
	Services, EndpointSlices, Endpoints bool
	// LocalEndpoint: the annotations of default/kubernetes were seen.
	LocalEndpoint bool
	// Domains: the nodes that share this node's labels are known, for every
	// topology key in use when the view was first made.
	Domains bool
}

// NewView returns a view that is empty until its inputs have been seen.
func NewView(ctx context.Context, cfg ViewConfig) *View {
	v := &View{
		logger:    klog.FromContext(ctx),
		nodeName:  cfg.NodeName,
		revisions: cfg.Revisions,
		domains:   cfg.Domains,
		filled:    make(chan struct{}), filledEndpoints: make(chan struct{}),
		localEndpoint: cfg.LocalEndpoint,
		keys:          map[string]*topologyKey{},
		services:      map[types.NamespacedName]*service{},
		slices:        map[types.NamespacedName]*slice{},
		endpoints:     map[types.NamespacedName]*endpoints{},
		servicesOut:   newOutbox(cfg.Services, "services"),
		slicesOut:     newOutbox(cfg.EndpointSlices, "endpointslices"),
		endpointsOut:  newOutbox(cfg.Endpoints, "endpoints"),
	}
	v.synced.LocalEndpoint = cfg.LocalEndpoint != nil
	return v
}

// Synced returns what the view has seen of its inputs.
func (v *View) Synced() Synced {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.synced
	s.OwnNode = v.labels != nil
	s.Domains = v.published || s.OwnNode && s.Services && v.policiesCommittedLocked()
	return s
}

// Filled returns a channel that is closed when the stores of Services and
// EndpointSlices hold the first view. They are empty before.
func (v *View) Filled() <-chan struct{} { return v.filled }

// FilledEndpoints returns the same for the store of Endpoints.
func (v *View) FilledEndpoints() <-chan struct{} { return v.filledEndpoints }

func (v *View) policiesCommittedLocked() bool {
	for _, s := range v.services {
		if s.wanted != nil {
			return false
		}
	}
	return true
}

// finishLocked ends the processing of an event: it makes the first view when
// the last of its inputs has come, decides and selects anew what the event has
// touched, and hands what changed to the stores.
func (v *View) finishLocked() {
	if !v.published && v.labels != nil && v.synced.Services && v.synced.EndpointSlices &&
		v.synced.LocalEndpoint && v.policiesCommittedLocked() {
		v.published = true
		v.logger.Info("View is complete", "services", len(v.services), "endpointSlices", len(v.slices))
		for _, s := range v.services {
			v.reselectLocked(s)
		}
		for _, e := range v.slices {
			v.touchSliceLocked(e)
		}
	}
	if !v.publishedEndpoints && v.published && v.synced.Endpoints {
		v.publishedEndpoints = true
		for _, e := range v.endpoints {
			v.touchEndpointsLocked(e)
		}
	}
	for _, s := range v.touchedServices {
		v.decideLocked(s)
		v.emitServiceLocked(s)
	}
	for _, e := range v.touchedSlices {
		e.touched = false
		v.emitSliceLocked(e)
	}
	for _, e := range v.touchedEndpoints {
		e.touched = false
		v.emitEndpointsLocked(e)
	}
	v.touchedServices = emptied(v.touchedServices)
	v.touchedSlices = emptied(v.touchedSlices)
	v.touchedEndpoints = emptied(v.touchedEndpoints)

	v.servicesOut.flush(v.logger, v.revisions)
	v.slicesOut.flush(v.logger, v.revisions)
	v.endpointsOut.flush(v.logger, v.revisions)
	if v.published && !isClosed(v.filled) {
		close(v.filled)
	}
	if v.publishedEndpoints && !isClosed(v.filledEndpoints) {
		close(v.filledEndpoints)
	}
	v.changed.notifyLocked()
}

// emptied returns the list for the next event, without what is in it.
func emptied[T any](list []*T) []*T {
	clear(list)
	return list[:0]
}

// locality is what the topology package may know of the domains in force. It is
// used by holders of the view's lock only.
type locality struct{ v *View }

var _ topology.Locality = locality{}

// Label implements topology.Locality.
func (l locality) Label(key string) (string, bool) {
	if k := l.v.keys[key]; k != nil && k.current != nil {
		return k.current.value, true
	}
	return "", false
}

// Member implements topology.Locality. The own Node is a member of each of its
// domains, whatever the watch of the domain says: that watch and the one of the
// own Node are not ordered against each other, and a deleted own Node keeps its
// last labels.
func (l locality) Member(key, nodeName string) bool {
	k := l.v.keys[key]
	if k == nil || k.current == nil {
		return false
	}
	return nodeName == l.v.nodeName || k.current.members.Has(nodeName)
}

func nameOf(m *metav1.ObjectMeta) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// serviceOf returns the name of the Service that a slice belongs to.
func serviceOf(s *discoveryv1.EndpointSlice) (types.NamespacedName, bool) {
	name, ok := topology.ServiceName(s)
	return types.NamespacedName{Namespace: s.Namespace, Name: name}, ok
}

// primaryFamily returns the address type of the Service's first IP family, that
// of its Endpoints object.
func primaryFamily(s *corev1.Service) discoveryv1.AddressType {
	if s != nil && len(s.Spec.IPFamilies) > 0 && s.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
