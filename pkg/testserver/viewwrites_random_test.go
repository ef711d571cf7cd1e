// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

var (
	randomWrites = flag.Bool("writes", false, "play random writes through the view")
	randomSeed   = flag.Uint64("seed", 0, "replay the random writes of this seed; 0 is another one each time")
)

const (
	randomWriters = 6
	randomTime    = 6 * time.Second
	// mark begins the annotations that writes leave behind, each one its own.
	mark = "mark/"
)

// acknowledged is a write that was answered with success.
type acknowledged struct {
	kind             int
	what, mark, name string
	uid              types.UID
}

// randomRun is one run of random writers against a view whose node moves between units, whose link is cut, and which is
// restarted.
type randomRun struct {
	t        *testing.T
	view     *restartable
	upstream kubernetes.Interface
	ctx      context.Context
	// troubles counts the beginnings and ends of troubles with the link and the view; odd while there is one.
	troubles atomic.Int64
	next     atomic.Int64

	mu       sync.Mutex
	acked    []acknowledged
	done     map[string]int
	whats    map[string]string // what made a mark
	history  [][]watch.Event   // of each kind, as upstream has it
	watching sync.WaitGroup
	watches  []*answerWatch
}

// answerWatch is a watch from the revision in an answer.
type answerWatch struct {
	kind   int
	name   string
	uid    types.UID
	marks  map[string]bool
	before int64
	events []watch.Event
	ended  bool
}

func (r *randomRun) errorf(format string, args ...any) {
	r.t.Helper()
	if r.ctx.Err() == nil {
		r.t.Errorf(format, args...)
	}
}

// pause lets other things happen meanwhile.
func (r *randomRun) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
	}
}

// calm reports whether nothing was wrong with the view since.
func (r *randomRun) calm(since int64) bool { return since%2 == 0 && r.troubles.Load() == since }

// disturb moves the node between units; with troubles, it also cuts the link, and restarts the view.
func (r *randomRun) disturb(random *rand.Rand, troubles bool, until <-chan time.Time) {
	for {
		select {
		case <-until:
			return
		case <-time.After(time.Duration(10+random.IntN(60)) * time.Millisecond):
		}
		choice := random.IntN(20)
		switch {
		case choice == 0 && troubles:
			r.troubles.Add(1)
			r.view.link.setCut(true)
			r.pause(time.Duration(random.IntN(150)) * time.Millisecond)
			r.view.link.setCut(false)
			r.settle()
		case choice == 1 && troubles:
			r.troubles.Add(1)
			r.view.stop()
			r.view.start()
			r.settle()
		default:
			label := fmt.Appendf(nil, `{"metadata":{"labels":{"zone1":"unit%d"}}}`, 1+random.IntN(3))
			if _, err := r.upstream.CoreV1().Nodes().Patch(r.ctx, "a", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
				r.errorf("labelling: %v", err)
			}
		}
	}
}

func runRandom(t *testing.T, seed uint64, troubles bool) {
	server, upstream := start(t, testserver.Options{WithoutControllers: true, Objects: []runtime.Object{
		newNode("a", map[string]string{"zone1": "unit1"}), newNode("b", map[string]string{"zone1": "unit2"}),
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &randomRun{t: t, upstream: upstream, ctx: ctx, done: map[string]int{}, whats: map[string]string{}, history: make([][]watch.Event, len(writtenKinds))}
	r.view = newRestartable(t, server)
	// Endpoints are followed from the first request on.
	_, client := r.view.clients()
	if _, err := client.CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	var ends []<-chan struct{}
	for kind := range writtenKinds {
		ends = append(ends, r.follow(kind))
	}
	until := time.After(randomTime)
	stop := make(chan struct{})
	var work sync.WaitGroup
	for i := range randomWriters {
		w := &writer{randomRun: r, random: rand.New(rand.NewPCG(seed, uint64(i+1))), held: map[string]written{}}
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.step(ctx)
				}
			}
		})
	}
	r.disturb(rand.New(rand.NewPCG(seed, 0)), troubles, until)
	close(stop)
	work.Wait()
	for _, k := range writtenKinds {
		if err := k.client(upstream).Post().Namespace("default").Resource(k.resource).Body(k.make("the-end")).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
	}
	for _, ended := range ends {
		<-ended
	}
	r.watching.Wait()
	r.check()
	r.checkWatches(!troubles)
	for _, what := range slices.Sorted(maps.Keys(r.done)) {
		t.Logf("%6d %s", r.done[what], what)
	}
	t.Logf("%d acknowledged, %d watches", len(r.acked), len(r.watches))
}

// TestRandomWritesThroughTheView has clients write in all ways at once, while the node moves between units and Services
// become filtered and whole again. What is acknowledged is upstream, once; nothing that was there is lost; reads and
// watches go on from the answers.
func TestRandomWritesThroughTheView(t *testing.T) {
	if !*randomWrites {
		// A connection that does not answer in time is taken for dead, which is an error where the link is to be calm.
		t.Skip("it wants a machine to itself; -writes switches it on")
	}
	seed := *randomSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for name, troubles := range map[string]bool{"calm": false, "with cuts and restarts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("replay with -seed=%d", seed)
			runRandom(t, seed, troubles)
		})
	}
}
