// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestKilledGridIsCaughtUpByTheRunningKubeProxy(t *testing.T) {
	// The reflectors of kube-proxy back off from 0.8 to 1.6 seconds, twice as long each time, also once more after
	// the 410 that tells them to list again: after an outage of two seconds they are back 9.2 seconds later at most.
	const outage, catchUp = 2 * time.Second, 10 * time.Second
	service := createService(t, lab.Service(lab.DemoService, closed()))
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	expectReached(t, 5*time.Second, service, "node0", "node1 node2", "node1 node2")
	n := cluster.Nodes[0]
	proxy := n.Proxy

	requests := startRequests(t, n, "http://"+service.Spec.ClusterIP+"/")
	n.Grid.Kill()
	moveToUnit(t, "node2", unit1)
	time.Sleep(outage) //nolint:forbidigo // the length of the outage is what is tested
	if _, err := view(t, n).CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Fatal("the killed grid-apiserver still answers")
	}
	must(t, n.StartGrid(t.Context()))
	expectReached(t, catchUp, service, "node0 node2")
	sent, failed := requests.end()
	if failed != nil || sent < 100 {
		t.Errorf("%d requests to the ClusterIP while grid-apiserver was away, first failure: %v", sent, failed)
	}
	if n.Proxy != proxy || !proxy.Running() {
		t.Error("kube-proxy was restarted")
	}
}

func TestSIGTERMEndsWithinFiveSecondsWithOpenWatches(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	config, err := n.TokenConfig(lab.AdminToken)
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	watches := map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"local services":       client.CoreV1().Services("").Watch,
		"local endpointslices": client.DiscoveryV1().EndpointSlices("").Watch,
		"proxied nodes":        client.CoreV1().Nodes().Watch,
		"proxied configmaps":   client.CoreV1().ConfigMaps("").Watch,
	}
	open := map[string]watch.Interface{}
	for name, start := range watches {
		w, err := start(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("watch %s: %v", name, err)
		}
		t.Cleanup(w.Stop)
		open[name] = w
	}
	took, graceful := n.Grid.Stop(5 * time.Second)
	if !graceful {
		t.Errorf("grid-apiserver still ran %v after SIGTERM", took)
	}
	if err := n.Grid.ExitError(); err != nil {
		t.Errorf("grid-apiserver ended by SIGTERM: %v, want exit code 0", err)
	}
	for name, w := range open {
		eventually(t, 5*time.Second, "the watch of "+name+" ends", func(context.Context) error {
			for {
				select {
				case _, open := <-w.ResultChan():
					if !open {
						return nil
					}
				default:
					return errors.New("still open")
				}
			}
		})
	}
	must(t, n.StartGrid(t.Context()))
}

// requestLoop is a client that sends one request after the other on connections of their own.
type requestLoop struct {
	cancel context.CancelFunc
	done   chan struct{}
	sent   atomic.Int64
	failed error // the first failure; valid after done
}

func startRequests(t *testing.T, n *lab.Node, url string) *requestLoop {
	ctx, cancel := context.WithCancel(t.Context())
	l := &requestLoop{cancel: cancel, done: make(chan struct{})}
	t.Cleanup(func() { l.end() })
	go func() {
		defer close(l.done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// Not ctx: the end of the loop must not fail the last request.
			if _, err := n.Get(context.Background(), url); err != nil && l.failed == nil {
				l.failed = err
			}
			l.sent.Add(1)
		}
	}()
	return l
}

// end ends the loop and returns how many requests were sent and the first failure.
func (l *requestLoop) end() (sent int64, failed error) {
	l.cancel()
	<-l.done
	return l.sent.Load(), l.failed
}
