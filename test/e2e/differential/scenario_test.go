// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// scenario is a sequence of changes in a namespace of its own.
type scenario struct {
	name  string
	steps []step
}

// step is one change, made on both sides; then they must agree.
type step struct {
	name string
	do   func(w *world)
	// refused: the requests must fail, on both sides and in the same way. Otherwise they must succeed.
	refused bool
}

// runScenarios runs scenarios, two at a time.
func runScenarios(t *testing.T, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

func (s scenario) run(t *testing.T) {
	namespace := namespaceName(t.Name())
	worlds := [2]*world{
		{side: reference, ctx: t.Context(), namespace: namespace, names: newNames()},
		{side: candidate, ctx: t.Context(), namespace: namespace, names: newNames()},
	}
	both := func(do func(i int, w *world) error) error {
		var errs [2]error
		var wg sync.WaitGroup
		for i, w := range worlds {
			wg.Go(func() {
				if err := do(i, w); err != nil {
					errs[i] = fmt.Errorf("%s: %w", w.kind, err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs[:]...)
	}
	t.Cleanup(func() {
		if err := both(func(_ int, w *world) error { return w.remove(context.Background()) }); err != nil {
			t.Error(err)
		}
	})
	var sentinels [2]*sentinel
	err := both(func(i int, w *world) (err error) {
		sentinels[i], err = newSentinel(w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range s.steps {
		t.Run(step.name, func(t *testing.T) {
			err := both(func(i int, w *world) error {
				w.ctx, w.answers, w.refused = t.Context(), nil, nil
				step.do(w)
				return step.check(w)
			})
			if err != nil {
				t.Error(err)
			}
			if diff := difference(worlds[0].said(), worlds[1].said()); diff != "" {
				t.Errorf("answers differ (-%s +%s):\n%s", reference.kind, candidate.kind, diff)
			}
			err = both(func(i int, _ *world) error { return sentinels[i].pass(t.Context()) })
			if err != nil {
				t.Fatal(err)
			}
			agree(t, worlds)
		})
	}
}

// check tells whether the requests of the step failed or succeeded as they should.
func (s step) check(w *world) error {
	switch {
	case !s.refused:
		return errors.Join(w.refused...)
	case len(w.refused) == len(w.answers):
		return nil
	}
	var errs []error
	for request, said := range w.answers {
		if status, ok := said.(map[string]any); !ok || status["code"] == nil {
			errs = append(errs, fmt.Errorf("%s was accepted: %v", request, toJSON(said)))
		}
	}
	return errors.Join(errs...)
}

// agree waits until both sides have the same objects, twice in a row without a write in between.
func agree(t *testing.T, worlds [2]*world) {
	t.Helper()
	var states [2]map[string]any
	last := ""
	err := lab.WaitFor(t.Context(), *agreement, "both sides agree", func(ctx context.Context) error {
		revisions := ""
		for i, w := range worlds {
			state, revision, err := w.state(ctx)
			if err != nil {
				return err
			}
			states[i] = allow(w.kind, state)
			revisions += revision
		}
		if !gocmp.Equal(states[0], states[1]) {
			return errors.New("they differ")
		}
		if revisions != last {
			last = revisions
			return errors.New("they still write")
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v (-%s +%s):\n%s", err, reference.kind, candidate.kind, difference(states[0], states[1]))
	}
}

// state returns the objects of the namespace, normalised, and their revisions.
func (w *world) state(ctx context.Context) (map[string]any, string, error) {
	state := map[string]any{}
	var revisions strings.Builder
	for _, kind := range []string{"Namespace", "ConfigMap", "ServiceGrid", "Service", "Pod", "Endpoints", "EndpointSlice"} {
		list, err := w.resourceOf(kind, w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, "", err
		}
		var all []map[string]any
		for _, item := range list.Items {
			if isSentinel(&item) || kind == "Namespace" && !strings.HasPrefix(item.GetName(), w.namespace+"-") {
				continue
			}
			fmt.Fprintln(&revisions, item.GetName(), item.GetResourceVersion())
			object := w.names.object(&item)
			switch kind {
			case "EndpointSlice":
				all = append(all, object)
				continue
			case "Endpoints":
				normalizeEndpoints(object)
			}
			state[kind+" "+item.GetName()] = object
		}
		for title, slice := range joinSlices(all) {
			state[title] = slice
		}
	}
	return state, revisions.String(), nil
}

func isSentinel(object *unstructured.Unstructured) bool {
	return strings.HasPrefix(object.GetName(), sentinelName) || strings.HasPrefix(object.GetLabels()["kubernetes.io/service-name"], sentinelName)
}

var notInNames = regexp.MustCompile("[^a-z0-9]+")

// namespaceName makes a namespace of a test's name.
func namespaceName(test string) string {
	_, name, _ := strings.Cut(test, "/")
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return name[:min(len(name), 63)]
}
