// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// counter counts what a client asks for, with the answers.
type counter struct {
	next http.RoundTripper

	mu sync.Mutex
	// lists are all LIST requests; relists those LISTs and WATCHes with initial
	// events that were answered with 200.
	lists   int
	relists map[string]int
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	info, infoErr := requestInfo.NewRequestInfo(r)
	if infoErr != nil {
		return response, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if info.Verb == "list" {
		c.lists++
	}
	asked := seen{verb: info.Verb, query: r.URL.Query()}
	if asked.relist() && err == nil && response.StatusCode == http.StatusOK {
		c.relists[info.Resource]++
	}
	return response, err
}

func (c *counter) counted() (lists int, relists map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	relists = map[string]int{}
	for resource, n := range c.relists {
		relists[resource] = n
	}
	return c.lists, relists
}

// countedClient is a client whose requests are counted.
func countedClient(t testing.TB, config *rest.Config) (kubernetes.Interface, *counter) {
	t.Helper()
	c := &counter{relists: map[string]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	return newClient(t, config), c
}

// withoutWatchList makes a reflector begin with a LIST.
type withoutWatchList struct{ *cache.ListWatch }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func sliceSource(client kubernetes.Interface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.DiscoveryV1().EndpointSlices("").List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.DiscoveryV1().EndpointSlices("").Watch(ctx, o)
		},
	}
}

func serviceSource(client kubernetes.Interface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Services("").List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Services("").Watch(ctx, o)
		},
	}
}

func namespaceSource(client kubernetes.Interface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Namespaces().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Namespaces().Watch(ctx, o)
		},
	}
}

// listWatch is what an informer is made of.
type listWatch struct {
	source  *cache.ListWatch
	example runtime.Object
}

// mirror is an event handler like many: it ignores updates whose
// resourceVersion did not change.
type mirror struct {
	mu      sync.Mutex
	objects map[string]string // by name
	deleted []string
	unknown []string // deleted, by DeletedFinalStateUnknown
}

func newMirror() *mirror { return &mirror{objects: map[string]string{}} }

var _ cache.ResourceEventHandler = &mirror{}

// OnAdd implements cache.ResourceEventHandler.
func (m *mirror) OnAdd(obj any, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[obj.(metav1.Object).GetName()] = summary(obj)
}

// OnUpdate implements cache.ResourceEventHandler.
func (m *mirror) OnUpdate(old, obj any) {
	if old.(metav1.Object).GetResourceVersion() == obj.(metav1.Object).GetResourceVersion() {
		return
	}
	m.OnAdd(obj, false)
}

// OnDelete implements cache.ResourceEventHandler.
func (m *mirror) OnDelete(obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
		m.unknown = append(m.unknown, obj.(metav1.Object).GetName())
	}
	name := obj.(metav1.Object).GetName()
	m.deleted = append(m.deleted, name)
	delete(m.objects, name)
}

// becomes waits until the handler knows exactly want.
func (m *mirror) becomes(t testing.TB, limit time.Duration, what string, want ...string) {
	t.Helper()
	wanted := map[string]bool{}
	for _, w := range want {
		wanted[w] = true
	}
	eventually(t, limit, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, got := range m.objects {
			if !wanted[got] {
				return false
			}
		}
		return len(m.objects) == len(want)
	}, func() any { return fmt.Sprintf("%s: handler knows %v, want %v", what, m.snapshot(), want) })
}

func (m *mirror) snapshot() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	got := map[string]string{}
	for name, o := range m.objects {
		got[name] = o
	}
	return got
}

// runInformer runs an informer with the handlers, the first without resync, the
// others with one of 30 s, until the test ends.
func runInformer(t testing.TB, lw cache.ListerWatcher, example runtime.Object, handlers ...cache.ResourceEventHandler) cache.SharedIndexInformer {
	t.Helper()
	informer := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{})
	for i, h := range handlers {
		resync := time.Duration(0)
		if i > 0 {
			resync = 30 * time.Second
		}
		if _, err := informer.AddEventHandlerWithResyncPeriod(h, resync); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return informer
}

func TestHandlersThatIgnoreEqualResourceVersionsGetTheNewContent(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"), slice("other", "", "n3"))...)
	g := readyGrid(t, u)
	type variant struct {
		name      string
		watchList bool
		counter   *counter
		handlers  [2]*mirror
	}
	var variants []*variant
	for _, contentType := range []string{asJSON, asProtobuf} {
		for _, watchList := range []bool{true, false} {
			v := &variant{name: contentType + " WatchList=" + strconv.FormatBool(watchList), watchList: watchList, handlers: [2]*mirror{newMirror(), newMirror()}}
			var client kubernetes.Interface
			client, v.counter = countedClient(t, g.as(contentType))
			var lw cache.ListerWatcher = sliceSource(client)
			if !watchList {
				lw = withoutWatchList{sliceSource(client)}
			}
			runInformer(t, lw, &discoveryv1.EndpointSlice{}, v.handlers[0], v.handlers[1])
			variants = append(variants, v)
		}
	}
	all := func(limit time.Duration, want string) {
		t.Helper()
		for _, v := range variants {
			for _, h := range v.handlers {
				h.becomes(t, limit, v.name, want, "other[n3]")
			}
		}
	}
	all(patience, "s-1[n1 n2]")
	u.put(t, node("n3", "a"))
	all(soon, "s-1[n1 n2 n3]")
	u.put(t, service("s", noPolicy), node("n3", "b"))
	all(soon, "s-1[n1 n2 n3]")
	u.put(t, service("s", zoneKeys))
	all(soon, "s-1[n1 n2]")
	u.put(t, node("n1", ""))
	all(soon, "s-1[]")
	for _, v := range variants {
		lists, relists := v.counter.counted()
		if want := map[bool]int{true: 0, false: 1}[v.watchList]; lists != want || relists["endpointslices"] != 1 {
			t.Errorf("%s: %d LISTs and %v relists, want %d and one", v.name, lists, relists, want)
		}
	}
}

func TestInformersRelistOnceAfterARestart(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"))...)
	g := readyGrid(t, u)
	client, counted := countedClient(t, g.as(asProtobuf))
	services, slices := newMirror(), newMirror()
	runInformer(t, serviceSource(client), &corev1.Service{}, services)
	runInformer(t, sliceSource(client), &discoveryv1.EndpointSlice{}, slices)
	services.becomes(t, patience, "before", "s")
	slices.becomes(t, patience, "before", "s-1[n1 n2]")
	_, before := counted.counted()

	g.stop(t)
	u.put(t, slice("s-1", "s", "n2", "n3"), service("t", zoneKeys))
	startGridIn(t, u, g.dir, g.address)
	// How soon they retry is up to the backoff of client-go, which grows with the
	// time that the restart takes.
	services.becomes(t, patience, "after", "s", "t")
	slices.becomes(t, patience, "after", "s-1[n2]")
	_, after := counted.counted()
	for _, resource := range []string{"services", "endpointslices"} {
		if n := after[resource] - before[resource]; n != 1 {
			t.Errorf("%d relists of %s, want one", n, resource)
		}
	}
}
