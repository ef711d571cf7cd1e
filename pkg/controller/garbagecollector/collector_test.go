// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

func TestDependentsFollowTheirOwner(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{background, foreground} {
		t.Run(string(policy), func(t *testing.T) {
			f := start(t, 2)
			deployment := f.create(deployments, "a", "d")
			set := f.create(replicaSets, "a", "rs", deployment.ref(true))
			pod1, pod2 := f.create(pods, "a", "p1", set.ref(true)), f.create(pods, "a", "p2", set.ref(false))
			other := f.create(pods, "a", "other")
			f.settle()
			f.delete(deployment, policy)
			f.gone(deployment, set, pod1, pod2)
			f.there(nil, other)
		})
	}
}

func TestForegroundOwnerWaitsForBlockingDependents(t *testing.T) {
	f := start(t, 2)
	set := f.create(replicaSets, "a", "rs")
	held := metav1.ObjectMeta{Namespace: "a", Finalizers: []string{"example.com/f"}}
	held.Name, held.OwnerReferences = "blocking", []metav1.OwnerReference{set.ref(true)}
	blocking := f.createWith(pods, held)
	held.Name, held.OwnerReferences = "free", []metav1.OwnerReference{set.ref(false)}
	free := f.createWith(pods, held)
	f.settle()
	f.delete(set, foreground)
	f.eventually("the dependents are being deleted", func() bool {
		return f.get(blocking).DeletionTimestamp != nil && f.get(free).DeletionTimestamp != nil
	})
	if f.get(set) == nil {
		t.Fatal("the owner went before its dependent")
	}
	f.patch(blocking, `{"metadata":{"finalizers":null}}`)
	f.gone(blocking, set)
	if f.get(free) == nil {
		t.Error("the finalizer of a dependent was ignored")
	}
}

func TestReferenceThatStopsBlockingFreesOwner(t *testing.T) {
	tests := map[string]string{
		"unblocked": `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"UID","blockOwnerDeletion":false}]}}`,
		"removed":   `{"metadata":{"ownerReferences":null}}`,
	}
	for name, patch := range tests {
		t.Run(name, func(t *testing.T) {
			f := start(t, 2)
			set := f.create(replicaSets, "a", "rs")
			pod := f.createWith(pods, metav1.ObjectMeta{
				Namespace: "a", Name: "p", Finalizers: []string{"example.com/f"}, OwnerReferences: []metav1.OwnerReference{set.ref(true)},
			})
			f.settle()
			f.delete(set, foreground)
			f.eventually("the dependent is being deleted", func() bool { return f.get(pod).DeletionTimestamp != nil })
			f.patch(pod, strings.ReplaceAll(patch, "UID", string(set.uid)))
			f.gone(set)
		})
	}
}

func TestOrphansStay(t *testing.T) {
	f := start(t, 2)
	set := f.create(replicaSets, "a", "rs")
	other := f.create(configMaps, "a", "other")
	alone := f.create(pods, "a", "alone", set.ref(true))
	shared := f.create(pods, "a", "shared", set.ref(true), other.ref(false))
	f.settle()
	f.delete(set, orphan)
	f.gone(set)
	f.there(nil, alone)
	f.there([]object{other}, shared)
}

func TestLastOwnerCounts(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{background, foreground} {
		t.Run(string(policy), func(t *testing.T) {
			f := start(t, 2)
			a, b := f.create(configMaps, "a", "a"), f.create(configMaps, "a", "b")
			pod := f.create(pods, "a", "p", a.ref(true), b.ref(true))
			f.settle()
			f.delete(a, policy)
			f.gone(a)
			f.there([]object{b}, pod)
			f.settle()
			f.delete(b, policy)
			f.gone(b, pod)
		})
	}
}

func TestDanglingReferences(t *testing.T) {
	f := start(t, 2)
	absent := object{resource: configMaps, name: "absent", uid: "no-such-uid"}
	solid := f.create(configMaps, "a", "solid")
	sameName := object{resource: configMaps, name: "solid", uid: "another-uid"}

	f.gone(f.create(pods, "a", "p1", absent.ref(false)), f.create(pods, "a", "p2", sameName.ref(false)))
	f.there([]object{solid}, f.create(pods, "a", "p3", absent.ref(false), solid.ref(false)))
	// The name or the kind is wrong, though the uid is in the graph.
	wrong := solid.ref(false)
	wrong.Name = "wrong"
	f.gone(f.create(pods, "a", "p4", wrong))
	wrong = solid.ref(false)
	wrong.Kind = "Pod"
	f.gone(f.create(pods, "a", "p5", wrong))
}

func TestUnknownKindOfOwnerKeepsObject(t *testing.T) {
	f := start(t, 2)
	unknown := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: "x", UID: "u"}
	absent := object{resource: configMaps, name: "absent", uid: "no-such-uid"}
	pod := f.create(pods, "a", "p", unknown, absent.ref(false))
	f.eventually("it was tried twice", func() bool { return f.collector.queue.NumRequeues(pod.uid) > 1 })
	if f.get(pod) == nil {
		t.Error("the object was deleted")
	}
}

func TestScopesOfOwners(t *testing.T) {
	f := start(t, 2)
	node := f.create(nodes, "", "n")
	owner := f.create(configMaps, "a", "owner")
	inOther := f.create(pods, "b", "p", owner.ref(true))
	f.gone(inOther)
	event := <-f.recorder.Events
	if !strings.HasPrefix(event, "Warning OwnerRefInvalidNamespace ownerRef [v1/ConfigMap, namespace: b, name: owner, uid: ") ||
		!strings.HasSuffix(event, `does not exist in namespace "b"`) {
		t.Errorf("event %q", event)
	}

	clustered := f.create(nodes, "", "clustered", node.ref(true))
	namespaced := f.create(pods, "b", "q", node.ref(true))
	invalid := f.create(nodes, "", "invalid", owner.ref(true))
	f.settle()
	f.delete(node, foreground)
	f.gone(node, clustered, namespaced)
	// The invalid one is neither collected nor does it hold up anybody.
	f.delete(owner, foreground)
	f.gone(owner)
	if f.get(invalid) == nil {
		t.Error("a cluster-scoped object with a namespaced owner was collected")
	}
}

func TestFinalizerOfDependentSaysHowItGoes(t *testing.T) {
	f := start(t, 2)
	owner := f.create(configMaps, "a", "owner")
	middle := f.createWith(replicaSets, metav1.ObjectMeta{
		Namespace: "a", Name: "middle", Finalizers: []string{metav1.FinalizerOrphanDependents}, OwnerReferences: []metav1.OwnerReference{owner.ref(true)},
	})
	leaf := f.create(pods, "a", "leaf", middle.ref(true))
	f.settle()
	f.delete(owner, background)
	f.gone(owner, middle)
	f.there(nil, leaf)
}

func TestCycleGoesInForeground(t *testing.T) {
	f := start(t, 2)
	a := f.create(configMaps, "a", "a")
	b := f.create(configMaps, "a", "b", a.ref(true))
	c := f.create(configMaps, "a", "c", b.ref(true))
	f.patch(a, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"`+string(c.uid)+`","blockOwnerDeletion":true}]}}`)
	f.settle()
	f.delete(a, foreground)
	f.gone(a, b, c)
}

func TestObjectsBeforeTheStart(t *testing.T) {
	f := start(t, 0)
	absent := object{resource: configMaps, name: "absent", uid: "no-such-uid"}
	dangling := f.create(pods, "a", "dangling", absent.ref(false))
	waiting := f.create(replicaSets, "a", "waiting")
	dependent := f.create(pods, "a", "dependent", waiting.ref(true))
	f.delete(waiting, foreground)
	orphaned := f.create(replicaSets, "a", "orphaned")
	free := f.create(pods, "a", "free", orphaned.ref(true))
	f.delete(orphaned, orphan)

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- f.collector.Run(ctx, 2) }()
	f.gone(dangling, waiting, dependent, orphaned)
	f.there(nil, free)
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestSteadyStateWritesNothing(t *testing.T) {
	f := start(t, 2)
	owner := f.create(configMaps, "a", "owner")
	pod := f.create(pods, "a", "p", owner.ref(true))
	f.settle()
	before := len(f.server.Writes())
	for _, o := range []object{owner, pod} {
		for range 3 {
			if settled, err := f.collector.process(t.Context(), o.uid); err != nil || !settled {
				t.Errorf("%s: settled %v, %v", o, settled, err)
			}
		}
	}
	if got := f.server.Writes()[before:]; len(got) > 0 {
		t.Errorf("writes: %v", got)
	}
}

func TestObjectDoesNotWaitForItself(t *testing.T) {
	f := start(t, 2)
	self := f.create(configMaps, "a", "self")
	f.patch(self, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"self","uid":"`+string(self.uid)+`","blockOwnerDeletion":true}]}}`)
	f.settle()
	f.there([]object{self}, self)
	f.delete(self, foreground)
	f.gone(self)
}
