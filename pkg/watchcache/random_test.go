// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	randomRuns  = flag.Int("random", 60, "number of random interleavings of each test of them")
	randomSeed  = flag.Uint64("seed", 0, "play the random interleaving of this seed alone")
	randomSteps = flag.String("steps", "", "play these steps of it alone, as a failure lists them")
)

const (
	// stepsOfRun is how many things happen in one interleaving.
	stepsOfRun = 200
	// shrinkingTime bounds the search for fewer steps that fail.
	shrinkingTime = 30 * time.Second
)

// TestViewEqualsTheFilteredUpstream runs random interleavings of everything
// that can happen upstream. After each single event it compares the view with
// what package topology makes of the objects and domains that the view has been
// told of. Clients of all habits check what they get, over restarts too.
func TestViewEqualsTheFilteredUpstream(t *testing.T) {
	playRandom(t, func(seed uint64, steps []int, trace func(string)) error {
		m := newInterleaving(seed)
		m.trace = trace
		for _, step := range steps {
			if m.err == nil {
				m.step(step)
			}
		}
		m.finish()
		return m.err
	})
}

// playRandom plays random interleavings on all processors. Of one that fails it
// looks for fewer steps that fail too, and says how to play them again.
func playRandom(t *testing.T, play func(seed uint64, steps []int, trace func(string)) error) {
	t.Helper()
	all := make([]int, stepsOfRun)
	for i := range all {
		all[i] = i
	}
	if *randomSeed != 0 {
		if *randomSteps != "" {
			all = parseSteps(t, *randomSteps)
		}
		if err := play(*randomSeed, all, func(line string) { t.Log(line) }); err != nil {
			t.Fatal(err)
		}
		return
	}
	var left atomic.Int64
	left.Store(int64(*randomRuns))
	var failed atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for failed.Load() == 0 && left.Add(-1) >= 0 {
				seed := 1 + rand.Uint64N(1<<53)
				if play(seed, all, nil) != nil {
					failed.CompareAndSwap(0, seed)
				}
			}
		})
	}
	wg.Wait()
	seed := failed.Load()
	if seed == 0 {
		return
	}
	deadline := time.Now().Add(shrinkingTime)
	steps := shrink(all, func(steps []int) bool { return time.Now().Before(deadline) && play(seed, steps, nil) != nil })
	var trace []string
	err := play(seed, steps, func(line string) { trace = append(trace, line) })
	if err == nil {
		err = fmt.Errorf("seed %d has failed, and not when it was repeated: it depends on the order of goroutines or of maps", seed)
	}
	t.Fatalf("%s\n%v\nreplay with: go test ./pkg/watchcache -run '^%s$' -seed=%d -steps=%s\nor all of it: -seed=%d",
		strings.Join(trace, "\n"), err, t.Name(), seed, formatSteps(steps), seed)
}

// shrink leaves out steps, in groups and then one by one, for as long as it
// still fails.
func shrink(steps []int, fails func([]int) bool) []int {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(steps); {
			if fewer := slices.Concat(steps[:from], steps[from+size:]); fails(fewer) {
				steps = fewer
			} else {
				from += size
			}
		}
	}
	return steps
}

func parseSteps(t *testing.T, list string) []int {
	t.Helper()
	var steps []int
	for _, field := range strings.Split(list, ",") {
		step, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("-steps: %v", err)
		}
		steps = append(steps, step)
	}
	return steps
}

func formatSteps(steps []int) string {
	var fields []string
	for _, step := range steps {
		fields = append(fields, strconv.Itoa(step))
	}
	return strings.Join(fields, ",")
}
