// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestDeletionsDuringACutOfUpstreamArriveAfterIt(t *testing.T) {
	for _, test := range []struct {
		name  string
		reset bool
		cut   time.Duration
		// heal is how long the view may stay behind after the cut: the pause between two retransmissions or
		// reconnections may have grown as long as the cut itself.
		heal time.Duration
	}{
		{"connections reset", true, 8 * time.Second, 20 * time.Second},
		{"packets dropped", false, 15 * time.Second, 45 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			stays := createService(t, lab.Service("stays", closed()))
			goes := createService(t, lab.Service("goes", closed()))
			setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit1)
			n := cluster.Nodes[0]
			expectReached(t, 5*time.Second, stays, "node0 node2")
			expectReached(t, 5*time.Second, goes, "node0 node2")
			slices, deleted := &nodesSeen{}, &deletions{names: map[string]bool{}}
			startInformer(t, view(t, n), "endpointslices", &discoveryv1.EndpointSlice{}, true, func(informer cache.SharedInformer) {
				_, err := informer.AddEventHandler(slices)
				must(t, err)
				_, err = informer.AddEventHandler(deleted)
				must(t, err)
			})
			startInformer(t, view(t, n), "services", &corev1.Service{}, true, func(informer cache.SharedInformer) {
				_, err := informer.AddEventHandler(deleted)
				must(t, err)
			})

			must(t, cluster.CutUpstream(t.Context(), n, test.reset))
			healed := false
			t.Cleanup(func() {
				if !healed {
					must(t, cluster.HealUpstream(context.Background()))
				}
			})
			must(t, cluster.DeleteService(t.Context(), goes.Name))
			deleteNode(t, "node2")
			expectReached(t, 5*time.Second, stays, "", "node1") // the other nodes know already
			time.Sleep(test.cut)                                //nolint:forbidigo // the length of the outage is what is tested
			got, err := reached(t.Context(), n, goes)
			if err != nil || got != "node0 node2" {
				t.Errorf("while upstream is away the last known view is served: got %q, %v", got, err)
			}
			if deleted.check("goes", "goes-1") == nil {
				t.Error("the deletion was seen through the cut: it does not cut")
			}
			must(t, cluster.HealUpstream(t.Context()))
			healed = true

			eventually(t, test.heal, "the informer of slices sees that node2 is gone", func(context.Context) error {
				return slices.check("stays", "node0")
			})
			eventually(t, test.heal, "the informers see that the Service and its slice are gone", func(context.Context) error {
				return deleted.check("goes", "goes-1")
			})
			eventually(t, propagation, "GET of the Service answers 404", func(ctx context.Context) error {
				return notFound(view(t, n).CoreV1().Services("default").Get(ctx, "goes", metav1.GetOptions{}))
			})
			expectReached(t, propagation, stays, "node0")
		})
	}
}

// deletions is an informer handler that keeps the names of deleted objects.
type deletions struct {
	mu    sync.Mutex
	names map[string]bool
}

func (d *deletions) OnAdd(any, bool)   {}
func (d *deletions) OnUpdate(any, any) {}

func (d *deletions) OnDelete(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name.Name] = true
}

func (d *deletions) check(names ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if !d.names[name] {
			return fmt.Errorf("no DELETED of %s", name)
		}
	}
	return nil
}

func notFound(_ *corev1.Service, err error) error {
	if err == nil {
		return errors.New("it is still there")
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
