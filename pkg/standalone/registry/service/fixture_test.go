// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

const (
	range4 = "10.96.0.0/24"
	range6 = "fd00:10:96::/112"
)

// What a cluster with these ranges hands out first: the first values behind
// those that are reserved for static use.
const (
	first4    = "10.96.0.17"
	second4   = "10.96.0.18"
	first6    = "fd00:10:96::101"
	firstPort = 30086
)

// cluster is the storage of services over a store in memory. It picks the first
// free value instead of a random one.
type cluster struct {
	t      testing.TB
	rest   *REST
	status *StatusREST
	pools  *pools
	store  *failingStore
}

func newCluster(t testing.TB, ranges ...string) *cluster {
	t.Helper()
	var prefixes []netip.Prefix
	for _, text := range ranges {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return newClusterOf(t, Config{ClusterIPRanges: prefixes})
}

func newClusterOf(t testing.TB, cfg Config) *cluster {
	t.Helper()
	p, err := newPools(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.random = func(uint64) uint64 { return 0 }
	getter := &testGetter{t: t}
	service, status, err := newREST(getter, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Destroy)
	return &cluster{t: t, rest: service, status: status, pools: p, store: getter.store}
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Service{}, &corev1.ServiceList{})
	s.AddKnownTypes(schema.GroupVersion{Version: runtime.APIVersionInternal}, &corev1.Service{}, &corev1.ServiceList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	s.AddTypeDefaultingFunc(&corev1.Service{}, func(obj any) { SetDefaults(obj.(*corev1.Service)) })
	return s
}

// testGetter puts a failingStore under services.
type testGetter struct {
	t     testing.TB
	store *failingStore
}

func (g *testGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	codecs := serializer.NewCodecFactory(newScheme(g.t))
	return generic.RESTOptions{
		StorageConfig:  storagebackend.NewDefaultConfig("", codecs.LegacyCodec(corev1.SchemeGroupVersion)).ForResource(resource),
		Decorator:      g.decorate,
		ResourcePrefix: "/" + resource.Resource,
	}, nil
}

func (g *testGetter) decorate(config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	store, err := memory.New(memory.Config{
		GroupResource: config.GroupResource, ResourcePrefix: prefix, NewFunc: newFunc, NewListFunc: newListFunc, Codec: config.Codec,
	})
	if err != nil {
		return nil, nil, err
	}
	g.store = &failingStore{Interface: store, before: func(string) error { return nil }}
	return g.store, store.Stop, nil
}

// failingStore calls before in front of each write: for updates after the
// strategy has agreed and in each round. The write fails with its error.
type failingStore struct {
	storage.Interface
	before func(verb string) error
}

func (s *failingStore) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.before("create"); err != nil {
		return err
	}
	return s.Interface.Create(ctx, key, obj, out, ttl)
}

func (s *failingStore) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	if err := s.before("delete"); err != nil {
		return err
	}
	return s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
}

func (s *failingStore) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
			obj, ttl, err := tryUpdate(input, meta)
			if err == nil {
				err = s.before("update")
			}
			return obj, ttl, err
		}, cached)
}

const namespace = "ns"

func (c *cluster) context() context.Context {
	return genericapirequest.WithNamespace(context.Background(), namespace)
}

// named returns a Service as a client sends it.
func named(name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
}

func dryRun(dry bool) []string {
	if dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (c *cluster) tryCreate(service *corev1.Service, dry bool) (*corev1.Service, error) {
	service = service.DeepCopy()
	SetDefaults(service)
	obj, err := c.rest.Create(c.context(), service, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun(dry)})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

func (c *cluster) create(service *corev1.Service) *corev1.Service {
	c.t.Helper()
	created, err := c.tryCreate(service, false)
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

// tryPut replaces what is stored.
func (c *cluster) tryPut(service *corev1.Service, dry bool) (*corev1.Service, error) {
	service = service.DeepCopy()
	SetDefaults(service)
	return c.write(service.Name, rest.DefaultUpdatedObjectInfo(service), dry)
}

// tryPatch changes what is stored, as a patch does.
func (c *cluster) tryPatch(name string, change func(*corev1.Service), dry bool) (*corev1.Service, error) {
	return c.write(name, patchOf(change), dry)
}

func patchOf(change func(*corev1.Service)) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		service := old.(*corev1.Service).DeepCopy()
		change(service)
		SetDefaults(service)
		return service, nil
	})
}

func (c *cluster) write(name string, info rest.UpdatedObjectInfo, dry bool) (*corev1.Service, error) {
	obj, _, err := c.rest.Update(c.context(), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
		false, &metav1.UpdateOptions{DryRun: dryRun(dry)})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

func (c *cluster) tryDelete(name string, dry bool) error {
	_, _, err := c.rest.Delete(c.context(), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: dryRun(dry)})
	return err
}

func (c *cluster) get(name string) *corev1.Service {
	c.t.Helper()
	obj, err := c.rest.Get(c.context(), name, &metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return obj.(*corev1.Service)
}

func (c *cluster) list() []corev1.Service {
	c.t.Helper()
	obj, err := c.rest.List(c.context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return obj.(*corev1.ServiceList).Items
}

// checkPools compares the pools with what the stored Services hold.
func (c *cluster) checkPools() {
	c.t.Helper()
	type holdings struct {
		IPs   map[string]types.UID
		Ports map[int32]types.UID
	}
	want := holdings{map[string]types.UID{}, map[int32]types.UID{}}
	services := c.list()
	for i := range services {
		h := heldBy(&services[i])
		for address := range h.ips {
			if other, ok := want.IPs[address.String()]; ok {
				c.t.Errorf("%s belongs to %s and %s", address, other, services[i].UID)
			}
			want.IPs[address.String()] = services[i].UID
		}
		for port := range h.ports {
			if other, ok := want.Ports[port]; ok {
				c.t.Errorf("%d belongs to %s and %s", port, other, services[i].UID)
			}
			want.Ports[port] = services[i].UID
		}
	}
	c.pools.mu.Lock()
	defer c.pools.mu.Unlock()
	got := holdings{map[string]types.UID{}, map[int32]types.UID{}}
	for address, claim := range c.pools.ips {
		got.IPs[address.String()] = claim.owner
		if claim.count != 1 {
			c.t.Errorf("%d claims of %s", claim.count, address)
		}
	}
	for port, claim := range c.pools.ports {
		got.Ports[port] = claim.owner
		if claim.count != 1 {
			c.t.Errorf("%d claims of %d", claim.count, port)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("pools (-stored +pools):\n%s", diff)
	}
}

func tinyConfig() Config {
	return Config{
		ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/29"), netip.MustParsePrefix("fd00:10:96::/125")},
		NodePortRange:   utilnet.PortRange{Base: 30000, Size: 8},
	}
}
