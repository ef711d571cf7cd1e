// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	testingclock "k8s.io/utils/clock/testing"
)

// environment is one of the four in which the suite that etcd's storage and the stock cacher must pass runs.
type environment struct{ codec, cached bool }

var environments = []environment{{}, {cached: true}, {codec: true}, {codec: true, cached: true}}

func (e environment) String() string {
	name := "object mode"
	if e.codec {
		name = "codec mode"
	}
	if e.cached {
		name += " under the cacher"
	}
	return name
}

// conformanceCase is one run of a function of the suite. What it does not apply to is a reason why: in object mode,
// on the store itself, under the cacher.
type conformanceCase struct {
	function string
	variant  string // tells runs of one function apart
	run      func(context.Context, *testing.T, *subject)

	notInObjectMode, notRaw, notCached string
	// alteredInObjectMode and alteredCached say what a case that runs there does not ask of the store itself.
	alteredInObjectMode, alteredCached string

	gates gates
	// waits marks cases that do little but wait for seconds.
	waits  bool
	store  func(*Config)
	cacher func(*cacher.Config)
}

func (c *conformanceCase) name() string {
	if c.variant == "" {
		return c.function
	}
	return c.function + "/" + c.variant
}

// skip returns why c does not run in e; "" if it does.
func (c *conformanceCase) skip(e environment) string {
	switch {
	case !e.codec && c.notInObjectMode != "":
		return c.notInObjectMode
	case e.cached:
		return c.notCached
	default:
		return c.notRaw
	}
}

// alteration returns what is not as the suite has it where c runs in e; "" if all is.
func (c *conformanceCase) alteration(e environment) string {
	switch {
	case c.skip(e) != "":
		return ""
	case !e.codec && c.alteredInObjectMode != "":
		return c.alteredInObjectMode
	case e.cached:
		return c.alteredCached
	default:
		return ""
	}
}

// TestConformance runs the cases that need a set of feature gates together, because gates are global: first those that
// use the processor, one after the other, then those that wait, all at once.
func TestConformance(t *testing.T) {
	for _, g := range conformanceGates() {
		t.Run(g.String(), func(t *testing.T) {
			for gate, enabled := range g {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, gate, enabled)
			}
			var waiting sync.WaitGroup
			defer waiting.Wait()
			for _, waits := range []bool{false, true} {
				for _, e := range environments {
					for i := range conformanceCases {
						c := &conformanceCases[i]
						switch {
						case !maps.Equal(c.gates, g) || c.waits != waits:
						case waits:
							waiting.Go(func() { c.test(t, e) })
						default:
							c.test(t, e)
						}
					}
				}
			}
		})
	}
}

// conformanceGates returns the sets of feature gates that cases need.
func conformanceGates() []gates {
	var out []gates
	for i := range conformanceCases {
		g := conformanceCases[i].gates
		if !slices.ContainsFunc(out, func(other gates) bool { return maps.Equal(g, other) }) {
			out = append(out, g)
		}
	}
	return out
}

func (c *conformanceCase) test(t *testing.T, e environment) {
	t.Run(e.String()+"/"+c.name(), func(t *testing.T) {
		if reason := c.skip(e); reason != "" {
			t.Skip(reason)
		}
		c.run(context.Background(), t, newSubject(t, e, c))
	})
}

// gates are the feature gates that a case needs otherwise than by default.
type gates map[featuregate.Feature]bool

func (g gates) String() string {
	var out []string
	for gate, enabled := range g {
		out = append(out, fmt.Sprintf("%s=%v", gate, enabled))
	}
	if out == nil {
		return "default"
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// subject is what a case runs on: the store itself, or a cacher over it.
type subject struct {
	storage.Interface
	below       *Store
	cached      *cachedStore       // nil: the store itself
	transformer *switchTransformer // nil in object mode
	codec       *failingCodec      // nil in object mode
}

func newSubject(t *testing.T, e environment, c *conformanceCase) *subject {
	t.Helper()
	s := &subject{}
	var change []func(*Config)
	if e.codec {
		s.codec = &failingCodec{Codec: podCodec()}
		change = append(change, withCodec, func(cfg *Config) { cfg.Codec = s.codec })
	}
	if c.store != nil {
		change = append(change, c.store)
	}
	s.below = newTestStore(t, change...)
	s.Interface = s.below
	if e.codec {
		s.transformer = switchable(s.below)
	}
	if e.cached {
		var options []func(*cacher.Config)
		if c.cacher != nil {
			options = append(options, c.cacher)
		}
		s.cached = newCachedStore(t, s.below, options...)
		s.Interface = s.cached
	}
	return s
}

func (s *subject) transforming() transforming { return transforming{s.Interface, s.transformer} }

// prefixed is for cases that in object mode make sense without their transformer.
func (s *subject) prefixed() storagetesting.InterfaceWithPrefixTransformer {
	if s.transformer == nil {
		return &untransforming{Interface: s.Interface, below: s.below}
	}
	return s.transforming()
}

// failTransformer makes reading fail, as a case asks for.
func (s *subject) failTransformer(fail bool) {
	next := value.Transformer(s.transformer.base)
	if fail {
		next = failingTransformer{next}
	}
	s.transformer.set(corruptTransformer{next})
}

func (s *subject) failDecoding(fail bool) { s.codec.decode.Store(fail) }

// compact forgets up to a revision, in the cacher too.
func (s *subject) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	if s.cached != nil {
		s.cached.compact(ctx, t, resourceVersion)
		return
	}
	compactTo(s.below)(ctx, t, resourceVersion)
}

// compactAsEtcd raises the revision by one as well: compacting an etcd of Kubernetes writes a key of its own.
func (s *subject) compactAsEtcd(ctx context.Context, t *testing.T, resourceVersion string) {
	s.compact(ctx, t, resourceVersion)
	increaseRevision(s.below)(ctx, t)
}

// checkReads checks how many objects a LIST decoded, if it decodes and asks the store.
func (s *subject) checkReads(t *testing.T, _, want uint64) {
	t.Helper()
	if s.transformer == nil || s.cached != nil {
		return
	}
	if got := s.transformer.base.GetReadsAndReset(); got != want {
		t.Errorf("%d objects were read, want %d", got, want)
	}
}

// stepClock moves the clock of the store by the interval of the periodic bookmarks, again and again until the test ends.
func (s *subject) stepClock(t *testing.T) {
	done := make(chan struct{})
	var stepping sync.WaitGroup
	stepping.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				s.below.clock.(*testingclock.FakeClock).Step(progressInterval)
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		stepping.Wait()
	})
}
