// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestInformerFollowsARelabelInEveryHandler(t *testing.T) {
	for _, test := range []struct {
		name      string
		watchList bool
	}{
		{"with WatchList and without any LIST", true},
		{"with LIST and WATCH", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := createService(t, lab.Service(lab.DemoService, closed()))
			setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
			n := cluster.Nodes[0]
			expectReached(t, 5*time.Second, service, "node0")
			before := listRequests(t, n, "endpointslices")

			handlers := map[time.Duration]*nodesSeen{0: {}, 30 * time.Second: {}}
			startInformer(t, view(t, n), "endpointslices", &discoveryv1.EndpointSlice{}, test.watchList, func(informer cache.SharedInformer) {
				for resync, handler := range handlers {
					_, err := informer.AddEventHandlerWithResyncPeriod(handler, resync)
					must(t, err)
				}
			})
			for _, step := range []struct{ unit, want string }{{unit2, "node0"}, {unit1, "node0 node2"}, {unit2, "node0"}} {
				moveToUnit(t, "node2", step.unit)
				for resync, handler := range handlers {
					eventually(t, propagation, fmt.Sprintf("the handler with resync %v sees %s", resync, step.want), func(context.Context) error {
						return handler.check(service.Name, step.want)
					})
				}
			}
			lists := listRequests(t, n, "endpointslices") - before
			if test.watchList && lists != 0 {
				t.Errorf("the server counted %d LISTs: the informer has fallen back from WatchList", lists)
			}
			if !test.watchList && lists == 0 {
				t.Error("the server counted no LIST")
			}
		})
	}
}

// nodesSeen is an informer handler that, like many, ignores updates whose resourceVersion did not change. It
// keeps the nodes of each Service's endpoints.
type nodesSeen struct {
	mu    sync.Mutex
	nodes map[string]string // by name of the Service
}

func (s *nodesSeen) OnAdd(obj any, _ bool) { s.set(obj.(*discoveryv1.EndpointSlice)) }

func (s *nodesSeen) OnUpdate(oldObj, newObj any) {
	before, after := oldObj.(*discoveryv1.EndpointSlice), newObj.(*discoveryv1.EndpointSlice)
	if before.ResourceVersion != after.ResourceVersion {
		s.set(after)
	}
}

func (s *nodesSeen) OnDelete(any) {}

func (s *nodesSeen) set(slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]string{}
	}
	s.nodes[slice.Labels[discoveryv1.LabelServiceName]] = nodesOf(slice)
}

func (s *nodesSeen) check(service, want string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.nodes[service]; got != want {
		return fmt.Errorf("it sees %q", got)
	}
	return nil
}

// nodesOf names the nodes of a slice's endpoints, for example "node0 node2".
func nodesOf(slice *discoveryv1.EndpointSlice) string {
	var nodes []string
	for _, e := range slice.Endpoints {
		if e.NodeName != nil {
			nodes = append(nodes, *e.NodeName)
		}
	}
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

// startInformer runs an informer of a resource of the view until the end of the test and waits for its sync.
func startInformer(t *testing.T, client kubernetes.Interface, resource string, object runtime.Object, watchList bool, addHandlers func(cache.SharedInformer)) {
	t.Helper()
	var getter cache.Getter = client.CoreV1().RESTClient()
	if resource == "endpointslices" {
		getter = client.DiscoveryV1().RESTClient()
	}
	listWatch := cache.NewListWatchFromClient(getter, resource, metav1.NamespaceAll, fields.Everything())
	informer := cache.NewSharedInformer(listWatcher{listWatch, watchList}, object, 0)
	addHandlers(informer)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	eventually(t, 5*time.Second, "the informer of "+resource+" is synced", func(context.Context) error {
		if !informer.HasSynced() {
			return fmt.Errorf("not synced")
		}
		return nil
	})
}

// listWatcher tells client-go's reflector whether it may use WatchList.
type listWatcher struct {
	*cache.ListWatch
	watchList bool
}

func (l listWatcher) IsWatchListSemanticsUnSupported() bool { return !l.watchList }

// listRequests returns how many LISTs of a resource the node's grid-apiserver has counted.
func listRequests(t *testing.T, n *lab.Node, resource string) int {
	t.Helper()
	config, err := n.TokenConfig(lab.AdminToken)
	must(t, err)
	return requestCount(t, config, `verb="LIST"`, `resource="`+resource+`"`)
}

// requestCount sums apiserver_request_total over the series with the given labels.
func requestCount(t *testing.T, config *rest.Config, labels ...string) int {
	t.Helper()
	code, body, err := lab.Probe(t.Context(), config, "/metrics")
	must(t, err)
	if code != http.StatusOK {
		t.Fatalf("/metrics answers %d: %s", code, body)
	}
	total := 0.0
	found := false
	lines := bufio.NewScanner(strings.NewReader(body))
next:
	for lines.Scan() {
		line, ok := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !ok {
			continue
		}
		found = true
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue next
			}
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		must(t, err)
		total += value
	}
	if !found {
		t.Fatal("/metrics has no apiserver_request_total")
	}
	return int(total)
}
