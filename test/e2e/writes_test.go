// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// TestNoIncrementIsLostThroughTheView counts in an annotation of a Service, with get, update, and again after a conflict,
// while the topology changes and the server is killed twice.
func TestNoIncrementIsLostThroughTheView(t *testing.T) {
	const writers, increments = 8, 200
	service := createService(t, lab.Service(lab.DemoService, closed()))
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	config, err := n.TokenConfig(lab.AdminToken)
	must(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	flipping, stopFlips := context.WithCancel(ctx)
	var flips, work sync.WaitGroup
	flips.Go(func() { flip(flipping, t, "node0") })
	var done atomic.Int64
	for i := range writers {
		w := &counter{services: client.CoreV1().Services(service.Namespace), name: service.Name, own: fmt.Sprint("example.com/writer-", i)}
		work.Go(func() {
			for range increments {
				if err := w.increment(ctx); err != nil {
					t.Errorf("%s: %v", w.own, err)
					return
				}
				done.Add(1)
			}
		})
	}
	for _, after := range []int64{writers * increments / 3, writers * increments * 2 / 3} {
		eventually(t, 3*time.Minute, fmt.Sprintf("%d increments", after), func(context.Context) error {
			if got := done.Load(); got < after {
				return fmt.Errorf("%d so far", got)
			}
			return nil
		})
		n.Grid.Kill()
		must(t, n.StartGrid(t.Context()))
	}
	work.Wait()
	stopFlips()
	flips.Wait()
	upstream, err := cluster.Cloud.Kubernetes.CoreV1().Services(service.Namespace).Get(t.Context(), service.Name, metav1.GetOptions{})
	must(t, err)
	if got, want := upstream.Annotations[total], strconv.Itoa(writers*increments); got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}

// flip moves a node between two units every 50 ms until ctx ends.
func flip(ctx context.Context, t *testing.T, node string) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, lab.ZoneLabel, []string{unit1, unit2}[i%2])
		if _, err := cluster.Cloud.Kubernetes.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
			t.Errorf("flip: %v", err)
			return
		}
	}
}

// total is the annotation in which all count.
const total = "example.com/total"

// counter is one of several that count in an annotation. It counts its own part in another, so that it can tell whether an
// update without an answer was carried out.
type counter struct {
	services  corev1client.ServiceInterface
	name, own string
	count     int
}

func (c *counter) increment(ctx context.Context) error {
	c.count++
	for {
		service, err := c.services.Get(ctx, c.name, metav1.GetOptions{})
		if err == nil {
			if service.Annotations[c.own] == strconv.Itoa(c.count) {
				return nil // of an update whose answer was lost
			}
			sum, _ := strconv.Atoi(service.Annotations[total])
			service.Annotations[total] = strconv.Itoa(sum + 1)
			service.Annotations[c.own] = strconv.Itoa(c.count)
			if _, err = c.services.Update(ctx, service, metav1.UpdateOptions{}); err == nil {
				return nil
			}
		}
		// The server is away for some seconds when it is killed.
		if _, isStatus := errors.AsType[*apierrors.StatusError](err); isStatus && !apierrors.IsConflict(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}
