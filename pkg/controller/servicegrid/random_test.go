// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

var (
	randomRuns = flag.Int("random", 300, "number of random runs")
	randomSeed = flag.Uint64("seed", 0, "replay the random run of this seed alone")
)

const stepsOfRun = 150

// TestEndStateIsAFunctionOfTheInputs lets users edit ServiceGrids, and other writers Services, while the informers lag,
// requests fail or lose their answers, and the controller is restarted. In the end, everything is as model says.
func TestEndStateIsAFunctionOfTheInputs(t *testing.T) {
	if *randomSeed != 0 {
		if err := playRun(t, *randomSeed, t.Logf); err != nil {
			t.Fatal(err)
		}
		return
	}
	for range *randomRuns {
		seed := 1 + rand.Uint64N(1<<53)
		if err := playRun(t, seed, func(string, ...any) {}); err != nil {
			t.Fatalf("replay with -seed=%d: %v", seed, err)
		}
	}
}

type run struct {
	*rand.Rand
	api *fakeAPI
	s   *stepped
	// others are the labels and annotations that other writers have put on a Service, by its UID.
	others map[types.UID]map[string]string
	faulty bool
	trace  func(string, ...any)
	t      *testing.T
	ctx    context.Context
}

func playRun(t *testing.T, seed uint64, trace func(string, ...any)) error {
	r := &run{Rand: rand.New(rand.NewPCG(seed, 0)), api: newFakeAPI(), others: map[types.UID]map[string]string{}, trace: trace, t: t}
	// What fails is meant to fail, and not worth a line.
	r.ctx = klog.NewContext(t.Context(), klog.Logger{})
	r.api.fault = r.fault
	r.restart()
	for range stepsOfRun {
		r.step()
	}
	r.faulty = false
	if err := r.s.settle(r.ctx); err != nil {
		return err
	}
	for r.collectGarbage() {
		if err := r.s.settle(r.ctx); err != nil {
			return err
		}
	}
	if err := r.check(); err != nil {
		return err
	}
	// The steady state: nothing is written, though everything is synced, also by a controller that has just started.
	for range 2 {
		r.s.recorder.take()
		writes := r.api.writes
		r.s.resync(r.ctx)
		if err := r.s.settle(r.ctx); err != nil {
			return err
		}
		if r.api.writes != writes {
			return fmt.Errorf("%d requests to write in the steady state", r.api.writes-writes)
		}
		if events := r.s.recorder.take(); len(events) > 0 {
			return fmt.Errorf("events in the steady state: %q", events)
		}
		if problem := r.s.written(); problem != "" {
			return errors.New(problem)
		}
		r.restart()
	}
	return nil
}

// restart replaces the controller by a new one. Its informers may have been served by an API server that lags.
func (r *run) restart() {
	known := everything(r.api)
	for resource, n := range known {
		if n > 0 && r.faulty {
			known[resource] = n - r.IntN(min(n, 4))
		}
	}
	s, err := newStepped(r.api, known)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s = s
}

// fault makes one request in ten fail, in a way that the controller must live with.
func (r *run) fault(verb, resource string, after bool) error {
	if !r.faulty || r.IntN(20) > 0 {
		return nil
	}
	r.trace("fault: %s %s, after it was carried out: %v", verb, resource, after)
	if after {
		return apierrors.NewTimeoutError("the answer is lost", 1)
	}
	if r.IntN(2) == 0 {
		return apierrors.NewConflict(schema.GroupResource{Resource: resource}, "x", errors.New("injected"))
	}
	return apierrors.NewInternalError(errors.New("injected"))
}

func (r *run) step() {
	switch n := r.IntN(100); {
	case n < 25:
		r.s.deliver(gridsResource)
	case n < 50:
		r.s.deliver(servicesResource)
	case n < 75:
		r.faulty = true
		r.s.controller.next(r.ctx)
		r.faulty = false
	case n < 80:
		r.s.queue.retry()
	case n < 88:
		r.userOfGrids()
	case n < 96:
		r.otherWriter()
	case n < 98:
		r.collectGarbage()
	default:
		r.trace("restart")
		r.faulty = true
		r.restart()
		r.faulty = false
	}
}

const namespace = "ns"

// gridNames are few, so that much happens to each. The Services of the first are headless: what changes only from a
// Service with an address to one without depends on whether there was one already.
var gridNames = []string{"h", "a", "b"}

func (r *run) userOfGrids() {
	key := types.NamespacedName{Namespace: namespace, Name: pick(r, gridNames)}
	switch grid := r.api.grid(key); {
	case grid == nil:
		grid = &superedgev1.ServiceGrid{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name}}
		r.editGrid(grid)
		r.trace("create grid %s", key.Name)
		r.must(r.api.create(grid))
	case r.IntN(8) == 0:
		r.trace("delete grid %s", key.Name)
		r.must(r.api.remove(gridsResource, key))
	default:
		r.trace("edit grid %s", key.Name)
		r.must(r.api.edit(gridsResource, key, func(obj metav1.Object) { r.editGrid(obj.(*superedgev1.ServiceGrid)) }))
	}
}

func (r *run) editGrid(grid *superedgev1.ServiceGrid) {
	if r.IntN(2) == 0 {
		grid.Labels = r.someOf("l1", "l2", superedgev1.LabelGridSelector)
	}
	if r.IntN(2) == 0 {
		grid.Annotations = r.someOf("a1", "a2", superedgev1.AnnotationTopologyKeys, corev1.LastAppliedConfigAnnotation)
	}
	if grid.Spec.GridUniqKey == "" || r.IntN(4) == 0 {
		grid.Spec.GridUniqKey = pick(r, []string{"zone1", "zone2", "example.com/zone", "", "not a key"})
	}
	if grid.Spec.Template.Type == "" || r.IntN(2) == 0 {
		grid.Spec.Template = r.template(grid.Name == gridNames[0])
	}
}

func (r *run) must(err error) {
	if err != nil {
		r.t.Fatal(err)
	}
}

func pick[T any](r *run, of []T) T { return of[r.IntN(len(of))] }

// someOf returns a map with some of the keys.
func (r *run) someOf(keys ...string) map[string]string {
	result := map[string]string{}
	for _, key := range keys {
		if r.IntN(2) == 0 {
			result[key] = pick(r, []string{"x", "y"})
		}
	}
	return result
}
