// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// countedRequests tells the requests of a client by their kind.
type countedRequests struct {
	mu   sync.Mutex
	seen map[string]int
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// count returns a copy of config whose requests are counted as "list", "watch" and the other methods.
func (c *countedRequests) count(config *rest.Config) *rest.Config {
	c.seen = map[string]int{}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			kind := request.Method
			if kind == http.MethodGet {
				kind = "list"
				if watching, _ := strconv.ParseBool(request.URL.Query().Get("watch")); watching {
					kind = "watch"
				}
			}
			c.mu.Lock()
			c.seen[kind]++
			c.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return counted
}

func (c *countedRequests) of(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[kind]
}

func TestSharedInformerFollowsWithoutAList(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("a", map[string]string{"n": "0"})}})
	requests := &countedRequests{}
	factory := informers.NewSharedInformerFactoryWithOptions(newClient(t, requests.count(server.Upstream)), 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps()
	var mu sync.Mutex
	var events []string
	record := func(event string, object any) {
		configMap := object.(*corev1.ConfigMap)
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprint(event, " ", configMap.Name, " ", configMap.Data["n"]))
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { record("add", object) },
		UpdateFunc: func(_, object any) { record("update", object) },
		DeleteFunc: func(object any) { record("delete", object) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer stop()
	factory.WaitForCacheSync(ctx.Done())

	configMaps := client.CoreV1().ConfigMaps("default")
	want := []string{"add a 0"}
	for n := 1; n <= 20; n++ {
		if _, err := configMaps.Update(t.Context(), newConfigMap("a", map[string]string{"n": strconv.Itoa(n)}), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("update a ", n))
	}
	if err := configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want = append(want, "delete a 20")
	eventually(t, func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		return cmp.Diff(want, events)
	})
	if requests.of("list") != 0 || requests.of("watch") != 1 {
		t.Errorf("%d LISTs and %d WATCHes; the informer is filled by one WATCH", requests.of("list"), requests.of("watch"))
	}
}

func TestDynamicClientReachesEveryKind(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{CustomResources: true})
	dynamicClient, err := dynamic.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			verbs := map[string]bool{}
			for _, verb := range resource.Verbs {
				verbs[verb] = true
			}
			if !verbs["list"] {
				continue // a review
			}
			found, err := dynamicClient.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil || found.GetResourceVersion() == "" || found.GetKind() != resource.Kind+"List" {
				t.Errorf("list of %s: %v", resource.Name, err)
			}
			listed++
		}
	}
	if listed < 20 {
		t.Errorf("only %d kinds can be listed", listed)
	}
	grids := schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: "servicegrids"}
	_, err = dynamicClient.Resource(grids).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "superedge.io/v1", "kind": "ServiceGrid", "metadata": map[string]any{"name": "g"},
		"spec": map[string]any{"gridUniqKey": "zone1", "template": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestLeaderElection(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{})
	// Long beside the pauses of a busy machine.
	const lease, renew, retry = 30 * time.Second, 20 * time.Second, 20 * time.Millisecond
	leads := make(chan string, 2)
	candidate := func(ctx context.Context, name string) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "controller"}, Client: client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: lease, RenewDeadline: renew, RetryPeriod: retry, ReleaseOnCancel: true, Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		running.Go(func() { elector.Run(ctx) })
		return func() {
			cancel()
			running.Wait()
		}
	}
	stops := map[string]func(){}
	for _, name := range []string{"one", "two"} {
		stops[name] = candidate(t.Context(), name)
		defer stops[name]()
	}
	first := <-leads
	holder := func(ctx context.Context) string {
		found, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "controller", metav1.GetOptions{})
		if err != nil || found.Spec.HolderIdentity == nil {
			return ""
		}
		return *found.Spec.HolderIdentity
	}
	if got := holder(t.Context()); got != first {
		t.Errorf("%s leads, the Lease says %q", first, got)
	}
	select {
	case second := <-leads:
		t.Fatalf("%s leads beside %s", second, first)
	default:
	}
	// The leader gives up, and the other one takes over.
	stops[first]()
	if second := <-leads; second == first {
		t.Errorf("%s leads again", second)
	} else if got := holder(t.Context()); got != second {
		t.Errorf("%s leads, the Lease says %q", second, got)
	}
}
