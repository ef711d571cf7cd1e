// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func stored(cluster *kube.Cluster, name string) *corev1.Endpoints {
	return kube.Get[*corev1.Endpoints](cluster, "endpoints", kube.Namespace, name)
}

func checkStored(t *testing.T, cluster *kube.Cluster, name string, want ...string) {
	t.Helper()
	endpoints := stored(cluster, name)
	if endpoints == nil {
		t.Errorf("there are no Endpoints %s", name)
		return
	}
	if diff := cmp.Diff(append([]string{}, want...), brief(endpoints.Subsets)); diff != "" {
		t.Errorf("Endpoints %s (-want +got):\n%s", name, diff)
	}
}

func withoutSelector(service *corev1.Service) { service.Spec.Selector = nil }

func externalName(service *corev1.Service) {
	service.Spec.Type, service.Spec.ExternalName, service.Spec.ClusterIP = corev1.ServiceTypeExternalName, "example.org", ""
}

func leader(endpoints *corev1.Endpoints) {
	endpoints.Annotations = map[string]string{leaderAnnotation: "{}"}
}

func TestControllerFollowsPodsAndServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		defer start(t, cluster).Stop(t)
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"start", func() {}, []string{"http:8080/TCP ready[10.0.0.1]"}},
			{"a pod comes", func() { cluster.Put(kube.Pod("b", "s", "10.0.0.2", kube.Unready)) }, []string{"http:8080/TCP ready[10.0.0.1] notReady[10.0.0.2]"}},
			{"becomes ready", func() { cluster.Put(kube.Pod("b", "s", "10.0.0.2")) }, []string{"http:8080/TCP ready[10.0.0.1 10.0.0.2]"}},
			{"fails without a change of its condition", func() { cluster.Put(kube.Pod("b", "s", "10.0.0.2", kube.Phase(corev1.PodFailed))) }, []string{"http:8080/TCP ready[10.0.0.1]"}},
			{"goes", func() { cluster.Remove("pods", kube.Namespace, "b") }, []string{"http:8080/TCP ready[10.0.0.1]"}},
			{"is terminating", func() { cluster.Put(kube.Pod("a", "s", "10.0.0.1", kube.Terminating)) }, []string{}},
			{"is published all the same", func() { cluster.Put(kube.Service("s", publishNotReady)) }, []string{"http:8080/TCP ready[10.0.0.1]"}},
			{"is another pod of the same name", func() {
				cluster.Remove("pods", kube.Namespace, "a")
				cluster.Put(kube.Pod("a", "s", "10.0.0.9"))
			}, []string{"http:8080/TCP ready[10.0.0.9]"}},
			{"gets another label", func() { cluster.Put(kube.Pod("a", "other", "10.0.0.9")) }, []string{}},
			{"the selector follows", func() {
				cluster.Put(kube.Service("s", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }))
			}, []string{"http:8080/TCP ready[10.0.0.9]"}},
		} {
			step.do()
			kube.Pass(time.Second)
			checkStored(t, cluster, "s", step.want...)
		}
		writes := len(cluster.Writes())
		cluster.Remove("services", kube.Namespace, "s")
		kube.Settle()
		if stored(cluster, "s") != nil {
			t.Error("the Endpoints are still there without their Service")
		}
		if diff := cmp.Diff([]string{"delete endpoints ns/s"}, cluster.Writes()[writes:]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func TestSteadyStateWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Service("empty"))
		cluster.Put(kube.Service("crowded", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "s"} }))
		for _, pod := range crowd(1001, 3) {
			cluster.Put(pod)
		}
		running := start(t, cluster)
		kube.Settle()
		if got := len(stored(cluster, "crowded").Subsets[0].Addresses); got != 1000 {
			t.Fatalf("%d addresses", got)
		}
		writes := len(cluster.Writes())
		if writes != 3 {
			t.Errorf("writes: %q", cluster.Writes())
		}
		// Changes that make no difference, and a restart.
		cluster.Put(kube.Pod("p0000", "s", "10.0.0.0", func(pod *corev1.Pod) { pod.Annotations = map[string]string{"x": "y"} }))
		cluster.Put(kube.Service("s", func(s *corev1.Service) { s.Annotations = map[string]string{"x": "y"} }))
		kube.Settle()
		running.Stop(t)
		running = start(t, cluster)
		kube.Settle()
		running.Stop(t)
		if diff := cmp.Diff([]string{}, append([]string{}, cluster.Writes()[writes:]...)); diff != "" {
			t.Errorf("writes in the steady state:\n%s", diff)
		}
	})
}

// TestRestartLeavesOthersAlone starts with informers of which one shows nothing
// for a while.
func TestRestartLeavesOthersAlone(t *testing.T) {
	for _, slow := range []string{"services", "pods", "endpoints"} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := kube.NewCluster()
				populated := kube.Service("populated")
				cluster.Put(populated)
				cluster.Put(kube.Pod("a", "populated", "10.0.0.1"))
				cluster.Put(Plan(nil, populated, []*corev1.Pod{kube.Pod("a", "populated", "10.0.0.1")}, time.Time{}))
				cluster.Put(kube.Service("manual", withoutSelector))
				cluster.Put(kube.Endpoints("manual"))
				cluster.Put(kube.Service("external", externalName))
				cluster.Put(kube.Endpoints("external"))
				cluster.Put(kube.Endpoints("election", leader))
				cluster.Put(kube.Endpoints("orphan"))
				before := kube.All[*corev1.Endpoints](cluster, "endpoints")

				ready := make(chan struct{})
				running := kube.Start(t, cluster, func(client kubernetes.Interface, factory informers.SharedInformerFactory) (*Controller, error) {
					c, err := build(client, factory)
					if err == nil {
						c.synced = append(c.synced, slowChecker{slow, ready})
					}
					return c, err
				})
				kube.Settle()
				if writes := cluster.Writes(); len(writes) > 0 {
					t.Errorf("written before all informers have synced: %q", writes)
				}
				close(ready)
				kube.Settle()
				running.Stop(t)
				delete(before, kube.Namespace+"/orphan")
				if diff := cmp.Diff(before, kube.All[*corev1.Endpoints](cluster, "endpoints")); diff != "" {
					t.Errorf("Endpoints (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// TestLeftoversStayWhereThereAreNone has Endpoints that a client has written
// before their Service.
func TestLeftoversStayWhereThereAreNone(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep %t", keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := kube.NewCluster()
				cluster.Put(kube.Endpoints("early"))
				cluster.Put(kube.Endpoints("manual"))
				cluster.Put(kube.Service("manual", withoutSelector))
				defer kube.Start(t, cluster, func(client kubernetes.Interface, factory informers.SharedInformerFactory) (*Controller, error) {
					c, err := build(client, factory)
					if err == nil && keep {
						c.KeepLeftovers()
					}
					return c, err
				}).Stop(t)
				kube.Settle()
				if stayed := stored(cluster, "early") != nil; stayed != keep {
					t.Errorf("Endpoints without a Service stayed: %t", stayed)
				}
				cluster.Put(kube.Service("early", withoutSelector))
				kube.Settle()
				if stored(cluster, "manual") == nil || keep && stored(cluster, "early") == nil {
					t.Error("Endpoints of a Service were deleted")
				}
				// Those of a Service that goes while we look are no leftovers.
				for _, name := range []string{"early", "manual"} {
					cluster.Remove("services", kube.Namespace, name)
				}
				kube.Settle()
				if stored(cluster, "early") != nil || stored(cluster, "manual") != nil {
					t.Error("the Endpoints are still there without their Service")
				}
			})
		})
	}
}

// slowChecker stands for an informer that syncs when the test says so.
type slowChecker struct {
	name string
	done chan struct{}
}

var _ cache.DoneChecker = slowChecker{}

func (s slowChecker) Name() string          { return s.name }
func (s slowChecker) Done() <-chan struct{} { return s.done }

func TestUnmanagedServicesKeepTheirEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		for _, edit := range []func(*corev1.Service){externalName, withoutSelector} {
			cluster.Put(kube.Service("s", edit))
			kube.Settle()
			cluster.Put(kube.Pod("b", "s", "10.0.0.2"))
			kube.Settle()
			checkStored(t, cluster, "s", "http:8080/TCP ready[10.0.0.1]")
			cluster.Put(kube.Endpoints("s")) // by hand
			kube.Settle()
			checkStored(t, cluster, "s", "http:80/TCP ready[192.0.2.1]")
			cluster.Put(kube.Service("s"))
			kube.Settle()
			checkStored(t, cluster, "s", "http:8080/TCP ready[10.0.0.1 10.0.0.2]")
			cluster.Remove("pods", kube.Namespace, "b")
			kube.Settle()
		}
	})
}

func TestOtherWritersAreCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		right := stored(cluster, "s")
		for _, disturb := range []func(){
			func() { cluster.Put(kube.Endpoints("s")) },
			func() { cluster.Remove("endpoints", kube.Namespace, "s") },
			func() { cluster.Put(kube.Endpoints("s", func(e *corev1.Endpoints) { e.Subsets = right.Subsets })) }, // no labels
		} {
			writes := len(cluster.Writes())
			disturb()
			kube.Settle()
			got := stored(cluster, "s")
			if got == nil {
				t.Fatal("the Endpoints are gone")
			}
			if diff := cmp.Diff(right.Subsets, got.Subsets) + cmp.Diff(right.Labels, got.Labels); diff != "" {
				t.Errorf("Endpoints (-want +got):\n%s", diff)
			}
			if got := cluster.Writes()[writes:]; len(got) != 1 {
				t.Errorf("writes: %q", got)
			}
		}
	})
}

// TestInsistingWriterIsNotFoughtHard runs against a writer that always answers.
func TestInsistingWriterIsNotFoughtHard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		writes := len(cluster.Writes())
		for range 1000 { // 10 s
			cluster.Put(kube.Endpoints("s"))
			kube.Pass(10 * time.Millisecond)
		}
		kube.Settle()
		if got := len(cluster.Writes()) - writes; got > 120 {
			t.Errorf("%d writes in 10 s", got)
		}
		checkStored(t, cluster, "s")
	})
}

func TestStaleCacheIsNotWrittenFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s"))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		cluster.Hold("endpoints")
		cluster.Put(kube.Pod("a", "s", "10.0.0.1"))
		kube.Pass(time.Second)
		writes := len(cluster.Writes())
		cluster.Put(kube.Pod("b", "s", "10.0.0.2"))
		kube.Pass(time.Hour)
		if got := cluster.Writes()[writes:]; len(got) > 0 {
			t.Errorf("written from a stale cache: %q", got)
		}
		checkStored(t, cluster, "s", "http:8080/TCP ready[10.0.0.1]")
		cluster.Release("endpoints")
		kube.Settle()
		checkStored(t, cluster, "s", "http:8080/TCP ready[10.0.0.1 10.0.0.2]")
	})
}

func TestFailedWritesAreRepeated(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("endpoints"), "s", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, test := range []struct {
		name   string
		err    error
		repeat bool
	}{
		{"any error", apierrors.NewInternalError(errors.New("broken")), true},
		{"forbidden", apierrors.NewForbidden(corev1.Resource("endpoints"), "s", errors.New("no right")), true},
		{"a namespace that is terminating", terminating, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := kube.NewCluster()
				cluster.Fail(func(string, string) error { return test.err })
				cluster.Put(kube.Service("s"))
				defer start(t, cluster).Stop(t)
				kube.Pass(time.Hour)
				if got := len(cluster.Writes()); test.repeat != (got > 1) || got > 100 {
					t.Errorf("%d attempts", got)
				}
				cluster.Fail(nil)
				kube.Settle()
				if exists := stored(cluster, "s") != nil; exists != test.repeat {
					t.Errorf("Endpoints exist: %t", exists)
				}
			})
		})
	}
}

func TestRunFailsIfInformersDoNotSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := kube.NewCluster().Client()
		controller, err := build(client, informers.NewSharedInformerFactory(client, 0))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := controller.Run(ctx, 1); err == nil || !strings.Contains(err.Error(), "not synced") {
			t.Errorf("error %v", err)
		}
	})
}

func TestTriggerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		changed := metav1.NewTime(created.Add(time.Hour))
		cluster := kube.NewCluster()
		cluster.Put(kube.Service("s", func(s *corev1.Service) { s.CreationTimestamp = created }))
		defer start(t, cluster).Stop(t)
		kube.Settle()
		got := func() string { return stored(cluster, "s").Annotations[corev1.EndpointsLastChangeTriggerTime] }
		if got() != "2026-01-01T00:00:00Z" {
			t.Errorf("at first %q", got())
		}
		cluster.Put(kube.Pod("a", "s", "10.0.0.1", func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = changed }))
		kube.Settle()
		if got() != "2026-01-01T01:00:00Z" {
			t.Errorf("after a pod became ready %q", got())
		}
		cluster.Remove("pods", kube.Namespace, "a")
		kube.Settle()
		if got() != "" {
			t.Errorf("after a pod went %q", got())
		}
	})
}
