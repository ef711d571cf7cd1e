// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// refusing is an upstream that is not there.
type refusing struct{}

func (refusing) List(context.Context, metav1.ListOptions) (*corev1.ServiceList, error) {
	return nil, syscall.ECONNREFUSED
}

func (refusing) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, syscall.ECONNREFUSED
}

// script is an upstream that answers LISTs and WATCHes in turn as it is told.
type script struct {
	mu      sync.Mutex
	lists   []func() (*corev1.ServiceList, error)
	watches []func(metav1.ListOptions) (watch.Interface, error)
	asked   []string
	down    int          // refuses so many connections of watches first
	logs    bytes.Buffer // without verbosity
}

func (s *script) List(_ context.Context, options metav1.ListOptions) (*corev1.ServiceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("list limit=%d", options.Limit))
	return next(&s.lists)()
}

func (s *script) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down > 0 {
		s.down--
		return nil, syscall.ECONNREFUSED
	}
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("an upstream without WatchList")
	}
	s.asked = append(s.asked, "watch "+options.ResourceVersion)
	return next(&s.watches)(options)
}

// next takes the first of a list, and leaves the last.
func next[T any](list *[]T) T {
	first := (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return first
}

func servicesAt(revision string, names ...string) func() (*corev1.ServiceList, error) {
	list := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: revision}}
	for _, name := range names {
		list.Items = append(list.Items, *newService(name, ""))
	}
	return func() (*corev1.ServiceList, error) { return list, nil }
}

// lastsFor is a watch that upstream ends after d, with a bookmark.
func lastsFor(d time.Duration) func(metav1.ListOptions) (watch.Interface, error) {
	return func(options metav1.ListOptions) (watch.Interface, error) {
		w := watch.NewFake()
		time.AfterFunc(d, func() {
			bookmark := newService("", "")
			bookmark.ResourceVersion = options.ResourceVersion
			w.Action(watch.Bookmark, bookmark)
			w.Stop()
		})
		return w, nil
	}
}

func forever(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// followed runs follow for d and returns what was listed, by names.
func (s *script) followed(t *testing.T, src *source, d time.Duration) [][]string {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&s.logs)))))
	var listed [][]string
	var wg sync.WaitGroup
	wg.Go(func() {
		follow(ctx, src, s, metav1.ListOptions{}, &corev1.Service{}, receiver[*corev1.Service]{
			set:    func(*corev1.Service) {},
			remove: func(*corev1.Service) {},
			replace: func(all []*corev1.Service, _ string) {
				names := []string{}
				for _, service := range all {
					names = append(names, service.Name)
				}
				listed = append(listed, names)
			},
		})
	})
	time.Sleep(d) //nolint:forbidigo // the clock of synctest
	cancel()
	wg.Wait()
	return listed
}

func TestUpstreamWhoseRevisionsWentBackIsListedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists: []func() (*corev1.ServiceList, error){
				servicesAt("167", "a", "b"), servicesAt("167", "a"), servicesAt("106", "b"), servicesAt("107", "b", "c"),
			},
			watches: []func(metav1.ListOptions) (watch.Interface, error){lastsFor(time.Minute), forever},
		}
		listed := s.followed(t, &source{resource: "services"}, 5*time.Minute)
		if diff := cmp.Diff([][]string{{"a", "b"}, {"b", "c"}}, listed); diff != "" {
			t.Errorf("lists (-want +got):\n%s\nasked: %v", diff, s.asked)
		}
	})
}

func TestUpstreamThatWasDownIsListedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := func() (*corev1.ServiceList, error) { return nil, syscall.ECONNREFUSED }
		// It was restored, and has passed the old revision before it is heard of.
		s := &script{
			lists: []func() (*corev1.ServiceList, error){
				servicesAt("167", "a", "b"), servicesAt("167", "a"), refused, refused, servicesAt("300", "b"), servicesAt("301", "b", "c"),
			},
			watches: []func(metav1.ListOptions) (watch.Interface, error){lastsFor(time.Minute), forever},
		}
		listed := s.followed(t, &source{resource: "services"}, 5*time.Minute)
		if diff := cmp.Diff([][]string{{"a", "b"}, {"b", "c"}}, listed); diff != "" {
			t.Errorf("lists (-want +got):\n%s\nasked: %v", diff, s.asked)
		}
	})
}

// The log says once that upstream cannot be read, and once that it can again; what the reflector says is for -v=2.
func TestFailuresOfUpstreamAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			down:    3,
			lists:   []func() (*corev1.ServiceList, error){servicesAt("167", "a")},
			watches: []func(metav1.ListOptions) (watch.Interface, error){forever},
		}
		s.followed(t, &source{resource: "services"}, 5*time.Minute)
		logs := s.logs.String()
		for _, want := range []string{`"Cannot read from upstream, trying again" resource="services" err="connection refused"`, `"Reading from upstream again" resource="services"`} {
			if strings.Count(logs, want) != 1 {
				t.Errorf("not once: %s", want)
			}
		}
		if lines := strings.Count(logs, "\n"); lines != 2 || t.Failed() {
			t.Errorf("%d lines:\n%s", lines, logs)
		}
	})
}

func TestWatchesThatShareASourceAreEachListedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := func() (*corev1.ServiceList, error) { return nil, syscall.ECONNREFUSED }
		shared := &source{resource: "node domains"}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				s := &script{
					lists:   []func() (*corev1.ServiceList, error){servicesAt("167", "a"), servicesAt("167", "a"), refused, servicesAt("300", "b")},
					watches: []func(metav1.ListOptions) (watch.Interface, error){lastsFor(time.Minute), forever},
				}
				if diff := cmp.Diff([][]string{{"a"}, {"b"}}, s.followed(t, shared, 5*time.Minute)); diff != "" {
					t.Errorf("lists (-want +got):\n%s\nasked: %v", diff, s.asked)
				}
			})
		}
		wg.Wait()
	})
}

func TestUpstreamThatGoesOnIsNotListedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []func() (*corev1.ServiceList, error){servicesAt("167", "a", "b"), servicesAt("170", "a", "c")},
			watches: []func(metav1.ListOptions) (watch.Interface, error){lastsFor(time.Minute), lastsFor(time.Minute), forever},
		}
		listed := s.followed(t, &source{resource: "services"}, 5*time.Minute)
		if diff := cmp.Diff([][]string{{"a", "b"}}, listed); diff != "" {
			t.Errorf("lists (-want +got):\n%s\nasked: %v", diff, s.asked)
		}
	})
}

func TestOnlyAnOptionalResourceThatNeverCameIsAbsent(t *testing.T) {
	notFound := func() (*corev1.ServiceList, error) {
		return nil, apierrors.NewNotFound(corev1.Resource("services"), "")
	}
	for _, test := range []struct {
		name     string
		optional bool
		lists    []func() (*corev1.ServiceList, error)
		absent   bool
		length   time.Duration
		atMost   int // LISTs
	}{
		{"optional", true, []func() (*corev1.ServiceList, error){notFound}, true, time.Hour, 21},
		{"optional, there later", true, []func() (*corev1.ServiceList, error){notFound, servicesAt("7")}, false, time.Hour, 4},
		{"required", false, []func() (*corev1.ServiceList, error){notFound}, false, time.Minute, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{lists: test.lists, watches: []func(metav1.ListOptions) (watch.Interface, error){forever}}
				src := &source{resource: "services", optional: test.optional}
				s.followed(t, src, test.length)
				if src.Absent() != test.absent {
					t.Errorf("absent: %t, want %t", src.Absent(), test.absent)
				}
				if len(s.asked) > test.atMost {
					t.Errorf("upstream was asked %d times", len(s.asked))
				}
			})
		})
	}
	came := &source{resource: "services", optional: true}
	came.arrive(klog.Background())
	came.observe(t.Context(), apierrors.NewNotFound(corev1.Resource("services"), ""))
	if came.Absent() {
		t.Error("a resource that was there is absent after a 404")
	}
}

func TestFollowingEndsAtOnceWhileUpstreamIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &source{resource: "services"}
		ended := make(chan time.Time)
		go func() {
			follow(ctx, s, refusing{}, metav1.ListOptions{}, &corev1.Service{}, receiver[*corev1.Service]{})
			ended <- time.Now()
		}()
		// Long enough for the pauses to be at their longest.
		time.Sleep(5 * time.Minute) //nolint:forbidigo // the clock of synctest
		if s.Err() == nil {
			t.Error("no error was noted")
		}
		cancelled := time.Now()
		cancel()
		if took := (<-ended).Sub(cancelled); took > 0 {
			t.Errorf("following went on for %v", took)
		}
	})
}
