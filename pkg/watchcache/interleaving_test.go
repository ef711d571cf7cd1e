// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// interleaving is an upstream to which random things happen, what a view hears
// of it, and clients of the view. After each single call into the view, which is
// one batch, all is compared. The first failure ends it.
type interleaving struct {
	generator
	seed uint64
	// trace, if not nil, takes what happens.
	trace func(string)
	err   error

	// What upstream has.
	nodes      map[string]map[string]string
	services   *channel[*corev1.Service]
	slices     *channel[*discoveryv1.EndpointSlice]
	endpoints  *channel[*corev1.Endpoints]
	kubernetes map[string]string
	revision   int
	// Whether somebody has asked for Endpoints, and whether the view hears of
	// the annotations of default/kubernetes.
	requested, kubernetesConnected bool

	// What outlives the process of the view.
	floor      memoryFloor
	ownLabels  map[string]string
	now        time.Time
	localFlag  *topology.LocalEndpoint
	logs       []*changelog
	clients    []*client
	handedOver []handedOver

	// The process of the view.
	view      *View
	domains   *fakeDomains
	stores    map[string]*memory.Store
	reference *reference
	stood     *stood
}

// handedOver is an object that belongs to the view, and what it must stay.
type handedOver struct{ given, want object }

func newInterleaving(seed uint64) *interleaving {
	m := &interleaving{
		generator: newGenerator(seed, 0), seed: seed,
		nodes: map[string]map[string]string{ownNode: {"zone1": "a"}}, now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		services: newChannel("service", (*View).SetService, (*View).DeleteService, (*View).ReplaceServices,
			func(r *reference) (map[types.NamespacedName]*corev1.Service, *bool) {
				return r.services, &r.servicesSynced
			}),
		slices: newChannel("slice", (*View).SetEndpointSlice, (*View).DeleteEndpointSlice, (*View).ReplaceEndpointSlices,
			func(r *reference) (map[types.NamespacedName]*discoveryv1.EndpointSlice, *bool) {
				return r.slices, &r.slicesSynced
			}),
		endpoints: newChannel("endpoints", (*View).SetEndpoints, (*View).DeleteEndpoints, (*View).ReplaceEndpoints,
			func(r *reference) (map[types.NamespacedName]*corev1.Endpoints, *bool) {
				return r.endpoints, &r.endpointsSynced
			}),
	}
	if m.oneIn(6) {
		m.localFlag = pick(m.generator, []*topology.LocalEndpoint{localEndpoint("127.0.0.8:443"), localEndpoint("[::8]:443")})
	}
	for _, kind := range viewKinds {
		log := &changelog{resource: kind.resource, newList: kind.newList}
		m.logs = append(m.logs, log)
		for _, habits := range clientKinds {
			m.clients = append(m.clients, &client{clientKind: habits, log: log})
		}
	}
	m.start()
	return m
}

func (m *interleaving) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

func (m *interleaving) note(format string, args ...any) {
	if m.trace != nil {
		m.trace(fmt.Sprintf(format, args...))
	}
}

// start starts a view that has heard of nothing, with what is on disk.
func (m *interleaving) start() {
	ctx := klog.NewContext(context.Background(), klog.New(nil))
	revisions := NewRevisions(ctx, &m.floor, m.now)
	limit := pick(m.generator, []int{10_000, 8, 12})
	m.stores = map[string]*memory.Store{}
	m.domains = &fakeDomains{}
	for i, kind := range viewKinds {
		store, err := kind.newStore(revisions.Start(), limit)
		if err != nil {
			m.fail("starting: %w", err)
			return
		}
		m.stores[kind.resource] = store
		if err := m.logs[i].begin(store, limit); err != nil {
			m.fail("starting: %w", err)
		}
	}
	m.reference, m.stood = newReference(m.localFlag), newStood()
	m.services.attach(m.reference)
	m.slices.attach(m.reference)
	m.endpoints.attach(m.reference)
	m.kubernetesConnected = m.localFlag != nil
	m.view = NewView(ctx, ViewConfig{
		NodeName: ownNode, Services: m.stores["services"], EndpointSlices: m.stores["endpointslices"], Endpoints: m.stores["endpoints"],
		Revisions: revisions, Domains: m.domains, LocalEndpoint: m.localFlag,
	})
}

// stop ends the process of the view, and with it the watches of the clients.
func (m *interleaving) stop() {
	for _, c := range m.clients {
		c.stop()
	}
	for _, store := range m.stores {
		store.Stop()
	}
	for _, h := range m.handedOver {
		if versionOf(h.given) != versionOf(h.want) {
			m.fail("%T %s, which is shared, was written to", h.given, keyOf(h.given))
		}
	}
	m.handedOver = nil
}

// step lets one random thing happen. Each step draws from a source of its own,
// so a step that is left out leaves the others as they were.
func (m *interleaving) step(number int) {
	m.generator = newGenerator(m.seed, uint64(number)+1)
	kind := pick(m.generator, weightedSteps)
	m.note("%d: %s", number, kind.name)
	kind.do(m)
	for i, c := range m.clients {
		if m.err == nil && m.filled(c.log.resource) {
			m.clientDid(c, c.step(newGenerator(m.seed, uint64(number)<<8|uint64(i)|1<<32)))
		}
	}
}

// finish lets everything come to rest.
func (m *interleaving) finish() {
	m.generator = newGenerator(m.seed, 0)
	m.converge()
	for _, c := range m.clients {
		if m.err == nil && m.filled(c.log.resource) {
			m.clientDid(c, c.readAll())
		}
	}
	m.stop()
}

func (m *interleaving) clientDid(c *client, err error) {
	if err != nil {
		m.fail("client of %s, %s: %w", c.log.resource, c.name, err)
	}
}

// filled reports whether requests for a resource are answered.
func (m *interleaving) filled(resource string) bool {
	if resource == "endpoints" {
		return isClosed(m.view.FilledEndpoints())
	}
	return isClosed(m.view.Filled())
}

// tell makes one call into the view and checks what comes of it.
func (m *interleaving) tell(what string, call func()) {
	if m.err != nil {
		return
	}
	m.note("   %s", what)
	call()
	if err := m.check(); err != nil {
		m.fail("after %s: %w", what, err)
	}
}

func (m *interleaving) check() error {
	r := m.reference
	if err := r.settle(m.domains.open()); err != nil {
		return err
	}
	for i, want := range []contents{r.wantServices, r.wantSlices, r.wantEndpoints} {
		if err := m.logs[i].add(want); err != nil {
			return err
		}
	}
	if m.filled("services") != r.published || m.filled("endpoints") != r.publishedEndpoints {
		return fmt.Errorf("the view is complete: %t, with Endpoints %t; want %t, %t", m.filled("services"), m.filled("endpoints"), r.published, r.publishedEndpoints)
	}
	synced := m.view.Synced()
	want := Synced{
		OwnNode: r.own != nil, Services: r.servicesSynced, EndpointSlices: r.slicesSynced, Endpoints: r.endpointsSynced, LocalEndpoint: r.kubernetesSynced,
		Domains: r.published || r.own != nil && r.servicesSynced && !r.pending,
	}
	if synced != want {
		return fmt.Errorf("Synced is %+v, want %+v", synced, want)
	}
	if err := m.checkDiffers(); err != nil {
		return err
	}
	return m.stood.check(m)
}

// checkDiffers asks of one slice and one Endpoints object whether the view has
// another than upstream.
func (m *interleaving) checkDiffers() error {
	asked := map[schema.GroupResource]types.NamespacedName{EndpointSlices: pick(m.generator, sliceNames), Endpoints: pick(m.generator, serviceNames)}
	for gr, name := range asked {
		want := m.reference.differs(gr, name)
		if got, _ := m.view.Differs(gr, name.Namespace, name.Name); got != want {
			return fmt.Errorf("%s %s differs from upstream's: %t, want %t", gr, name, got, want)
		}
	}
	return nil
}

// nextRevision returns a revision of upstream, which can be one that was before.
func (m *interleaving) nextRevision() string {
	m.revision++
	return strconv.Itoa(m.revision)
}

// nodesWith returns the names of the Nodes with a label, sorted.
func (m *interleaving) nodesWith(key, value string) []string {
	var names []string
	for name, labels := range m.nodes {
		if have, ok := labels[key]; ok && have == value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func localEndpoint(hostPort string) *topology.LocalEndpoint {
	local, err := topology.ParseHostPort(hostPort)
	if err != nil {
		panic(err)
	}
	return local
}
