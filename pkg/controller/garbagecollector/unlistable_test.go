// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// unlistable is a client for which LISTs of one resource fail.
type unlistable struct {
	metadata.Interface
	resource schema.GroupVersionResource
	err      error
}

func (u *unlistable) Resource(resource schema.GroupVersionResource) metadata.Getter {
	getter := u.Interface.Resource(resource)
	if resource != u.resource {
		return getter
	}
	return &failingGetter{failingLists{getter, u.err}, getter}
}

type failingGetter struct {
	failingLists
	getter metadata.Getter
}

func (g *failingGetter) Namespace(namespace string) metadata.ResourceInterface {
	return &failingLists{g.getter.Namespace(namespace), g.err}
}

type failingLists struct {
	metadata.ResourceInterface
	err error
}

func (l *failingLists) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return nil, l.err
}

func TestKindThatCannotBeListedDoesNotBlockOrphaning(t *testing.T) {
	broken := apierrors.NewInternalError(errors.New("conversion webhook is dead"))
	tests := []struct {
		name     string
		err      error
		observed bool // the graph has the pod
		freed    bool // the pod loses its reference
		logged   bool
	}{
		{"fails, with a dependent", broken, true, true, true},
		{"fails, without one", broken, false, false, true},
		{"went away", apierrors.NewNotFound(pods.GroupResource(), ""), false, false, false},
		{"has no LIST any more", apierrors.NewMethodNotSupported(pods.GroupResource(), "list"), false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, 0)
			f.collector.client = &unlistable{f.metadata, pods, test.err}
			owner := f.create(replicaSets, "a", "rs")
			listed := f.create(configMaps, "a", "listed", owner.ref(true)) // the graph does not have it
			pod := f.create(pods, "a", "p", owner.ref(true))
			elsewhere := f.create(pods, "b", "p", owner.ref(true)) // no dependent, in spite of its reference
			f.delete(owner, orphan)
			groups, lists, err := f.collector.discovery.ServerGroupsAndResourcesWithContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.collector.monitors.kinds = newKinds(groups, lists, nil)
			f.collector.graph.observe(newNode(replicaSets, replicaSets.GroupVersion().WithKind("ReplicaSet"), f.get(owner)))
			if test.observed {
				for _, o := range []object{pod, elsewhere} {
					f.collector.graph.observe(newNode(pods, pods.GroupVersion().WithKind("Pod"), f.get(o)))
				}
			}

			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
			if settled, err := f.collector.process(klog.NewContext(t.Context(), logger), owner.uid); !settled || err != nil {
				t.Fatalf("settled %v, %v", settled, err)
			}
			if f.get(owner) != nil {
				t.Error("the owner is still there")
			}
			f.there(nil, listed)
			f.there([]object{owner}, elsewhere)
			left := []object{owner}
			if test.freed {
				left = nil
			}
			f.there(left, pod)
			log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if logged := strings.Contains(log, "Resource=pods") && strings.Contains(log, "webhook is dead"); logged != test.logged {
				t.Errorf("logged %v, want %v: %q", logged, test.logged, log)
			}
		})
	}
}

func TestOrphaningStopsWithItsContext(t *testing.T) {
	f := start(t, 0)
	f.collector.client = &unlistable{f.metadata, pods, context.Canceled}
	f.collector.monitors.kinds = kinds{followed: map[schema.GroupVersionResource]schema.GroupVersionKind{pods: pods.GroupVersion().WithKind("Pod")}}
	owner := f.create(replicaSets, "a", "rs")
	f.delete(owner, orphan)
	f.collector.graph.observe(newNode(replicaSets, replicaSets.GroupVersion().WithKind("ReplicaSet"), f.get(owner)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.collector.process(ctx, owner.uid); err == nil {
		t.Error("no error")
	}
	if f.get(owner) == nil {
		t.Error("the owner is gone, its dependents are not known to be free")
	}
}
