// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// stepsOfRun is how many things happen in one random run.
const stepsOfRun = 150

var (
	randomRuns = flag.Int("random", 60, "number of runs of each random test")
	randomSeed = flag.Uint64("seed", 0, "play the random run of this seed alone, and log it")
)

// Play plays random runs in bubbles of virtual time. A run starts and stops
// controllers, and its check compares what there is at the end with a model.
func Play(t *testing.T, prepare func(*Random), start func(*testing.T, *Cluster) *Running, check func(*Cluster) error) {
	t.Helper()
	play := func(seed uint64) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := NewCluster()
				r := NewRandom(cluster, seed)
				prepare(r)
				running := start(t, cluster)
				for i := range stepsOfRun {
					line := r.Step()
					if *randomSeed != 0 {
						t.Log(i, line)
					}
					if r.oneIn(40) {
						running.Stop(t)
						for range r.IntN(5) {
							r.Step()
						}
						// Endpoints that appear after the start, without their
						// Service, are found at the next start only.
						cluster.Release("endpoints")
						running = start(t, cluster)
					}
				}
				r.Calm()
				Settle()
				cluster.CollectGarbage()
				Settle()
				if err := errors.Join(running.Caught(), check(cluster)); err != nil {
					t.Errorf("to see it again: -seed=%d\n%v", seed, err)
				}
				writes := cluster.Writes()
				Settle()
				if more := cluster.Writes()[len(writes):]; len(more) > 0 {
					t.Errorf("to see it again: -seed=%d\nwrites in the steady state: %q", seed, more)
				}
				running.Stop(t)
			})
		})
	}
	if *randomSeed != 0 {
		play(*randomSeed)
		return
	}
	for range *randomRuns {
		if t.Failed() {
			return
		}
		play(1 + rand.Uint64N(1<<53)) //nolint:gosec // a seed to replay
	}
}
