// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"strings"
	"sync"
	"testing"
)

// run makes an exchange on both sides, each in a namespace of its own, and compares.
func run(t *testing.T, e exchange) {
	t.Parallel()
	namespace := newNamespace()
	var talks [2]*conversation
	for i, s := range sides {
		talks[i] = newConversation(s, namespace+s.id)
		must(t, talks[i].give(t.Context(), e.given))
	}
	if e.reset == nil {
		talk(t, e.name, talks, e.steps)
		return
	}
	// One after the other, each from the same state.
	var answers [2][]*answer
	for i, c := range talks {
		for _, s := range e.reset {
			must(t, c.prepare(t.Context(), s))
		}
		must(t, c.settle(t.Context(), step{path: e.reset[0].path}))
		for _, s := range e.steps {
			a, err := c.send(t.Context(), s)
			must(t, err)
			answers[i] = append(answers[i], a)
		}
	}
	for i, s := range e.steps {
		t.Run(s.title(), func(t *testing.T) { compare(t, e.name+"/"+s.title(), answers[0][i], answers[1][i]) })
	}
}

// talk makes steps on both sides at the same time and compares after each.
func talk(t *testing.T, name string, talks [2]*conversation, steps []step) {
	for _, s := range steps {
		var answers [2]*answer
		var errs [2]error
		var wg sync.WaitGroup
		for i, c := range talks {
			wg.Go(func() { answers[i], errs[i] = c.send(t.Context(), s) })
		}
		wg.Wait()
		if s.upstream {
			for i, c := range talks {
				must(t, errs[i])
				must(t, c.settle(t.Context(), s))
			}
			continue
		}
		t.Run(s.title(), func(t *testing.T) {
			for _, err := range errs {
				must(t, err)
			}
			if !strings.Contains(string(answers[0].body), s.onlyIf) {
				t.Skipf("the answer of kube-apiserver has no %q", s.onlyIf)
			}
			compare(t, name+"/"+s.title(), answers[0], answers[1])
		})
	}
}
