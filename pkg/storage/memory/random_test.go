// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	randomRuns = flag.Int("random", 0, "how often each random test runs; 0: a few times, as in make test")
	randomSeed = flag.Uint64("seed", 0, "replay the random tests with this seed alone")
)

// atRandom runs a test with random seeds: as often as -random says, or else few times. A run is a function of its seed
// alone, but for how its goroutines are scheduled.
func atRandom(t *testing.T, few int, run func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	if *randomSeed != 0 {
		run(t, rand.New(rand.NewPCG(*randomSeed, 0)))
		return
	}
	runs := few
	if *randomRuns > 0 {
		runs = *randomRuns
	}
	for range runs {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, rand.New(rand.NewPCG(seed, 0))) }) {
			name, _, _ := strings.Cut(t.Name(), "/")
			t.Fatalf("replay with: go test ./pkg/storage/memory -run '^%s$' -seed=%d", name, seed)
		}
	}
}

// split returns a source of its own for a goroutine.
func split(random *rand.Rand) *rand.Rand {
	return rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
}
