// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"net/http"
	"path"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// listing counts the LISTs of a namespace, and calls after when one is answered.
type listing struct {
	http.RoundTripper
	mu     sync.Mutex
	counts map[string]int
	after  func(resource string, count int) error
}

func (l *listing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err != nil || request.Method != http.MethodGet {
		return response, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	resource := path.Base(request.URL.Path)
	l.counts[resource]++
	if l.after != nil {
		if err := l.after(resource, l.counts[resource]); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
	}
	return response, nil
}

// listings watches the LISTs of the controller from now on.
func (f *fixture) listings(after func(resource string, count int) error) *listing {
	l := &listing{RoundTripper: f.server.Config.Transport, counts: map[string]int{}, after: after}
	config := rest.CopyConfig(f.server.Config)
	config.Transport = l
	f.controller.metadata = metadata.NewForConfigOrDie(config)
	return l
}

// TestContentThatCameLateGoesToo stores an object that was admitted early when
// its kind has been found empty.
func TestContentThatCameLateGoesToo(t *testing.T) {
	for _, resource := range []string{"configmaps", "pods"} {
		t.Run(resource, func(t *testing.T) {
			f := newFixture(t, Options{})
			f.terminating("a", nil)
			f.listings(func(listed string, count int) (err error) {
				if listed != resource || count != 1 {
					return nil
				}
				if resource == "pods" {
					_, err = f.client.CoreV1().Pods("a").Create(t.Context(), pod("late", "", 30), metav1.CreateOptions{})
				} else {
					_, err = f.client.CoreV1().ConfigMaps("a").Create(t.Context(), configMap("late"), metav1.CreateOptions{})
				}
				return err
			})
			f.sync("a", true)
			if f.namespace("a") == nil {
				t.Error("the namespace went before its content")
			}
			f.sync("a", false)
			if f.namespace("a") != nil {
				t.Error("the namespace is still there")
			}
			maps, err := f.client.CoreV1().ConfigMaps("a").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(maps.Items) > 0 {
				t.Errorf("left: %v, %v", maps, err)
			}
			pods, err := f.client.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(pods.Items) > 0 {
				t.Errorf("left: %v, %v", pods, err)
			}
		})
	}
}

func TestOnlyTheLastRoundLooksTwice(t *testing.T) {
	f := newFixture(t, Options{})
	f.terminating("a", []corev1.FinalizerName{"example.com/f"}, configMap("x", "example.com/f"))
	check := func(round string, wantWaiting bool, want map[string]int) {
		t.Helper()
		l := f.listings(nil)
		f.sync("a", wantWaiting)
		if diff := cmp.Diff(want, l.counts); diff != "" {
			t.Errorf("LISTs of the round %s (-want +got):\n%s", round, diff)
		}
	}
	// A kind with content is listed again after its deletion.
	check("that waits", true, map[string]int{"pods": 1, "configmaps": 2, "events": 1, "deployments": 1, "replicasets": 1})
	if _, err := f.client.CoreV1().ConfigMaps("a").Update(t.Context(), configMap("x"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	check("that finds nothing", false, map[string]int{"pods": 2, "configmaps": 2, "events": 2, "deployments": 2, "replicasets": 2})
	// The finalizer of another is left.
	check("after the last", false, map[string]int{"pods": 1, "configmaps": 1, "events": 1, "deployments": 1, "replicasets": 1})
}

func TestStaysIfTheLastLookFails(t *testing.T) {
	f := newFixture(t, Options{})
	f.terminating("a", nil)
	f.listings(func(resource string, count int) error {
		if resource == "configmaps" && count == 2 {
			return http.ErrHandlerTimeout
		}
		return nil
	})
	if _, err := f.controller.sync(t.Context(), "a"); err == nil {
		t.Error("no error")
	}
	if f.namespace("a") == nil {
		t.Fatal("the namespace went though it may have content")
	}
	f.sync("a", false)
	if f.namespace("a") != nil {
		t.Error("the namespace is still there")
	}
}
