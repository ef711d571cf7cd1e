// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	kindserver "github.com/grid-apiserver/grid-apiserver/test/kinds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a state may take to come about: long, for a machine that
// is busy, since no test waits for it in vain.
const patience = 30 * time.Second

var (
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	nodes       = corev1.SchemeGroupVersion.WithResource("nodes")
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")
)

var kindNames = map[schema.GroupVersionResource]string{
	configMaps: "ConfigMap", pods: "Pod", nodes: "Node", deployments: "Deployment", replicaSets: "ReplicaSet",
}

// fixture is a server with a collector.
type fixture struct {
	testing.TB
	server    *kindserver.Server
	client    kubernetes.Interface
	metadata  metadata.Interface
	collector *Collector
	recorder  *record.FakeRecorder
}

// start runs the collector until the test ends. Without workers, objects are
// followed and nothing is done.
func start(t testing.TB, workers int) *fixture {
	t.Helper()
	f := &fixture{TB: t, server: kindserver.Start(t), recorder: record.NewFakeRecorder(1000)}
	f.client = kubernetes.NewForConfigOrDie(f.server.Config)
	f.metadata = metadata.NewForConfigOrDie(f.server.Config)
	collector, err := New(f.metadata, discovery.ToDiscoveryInterfaceWithContext(f.client.Discovery()), Options{Recorder: f.recorder, Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	f.collector = collector
	if workers == 0 {
		return f
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- collector.Run(ctx, workers) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	f.eventually("the collector has synced", collector.HasSynced)
	return f
}

func (f *fixture) eventually(what string, condition func() bool) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.Context(), 2*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		f.Fatalf("not within %v: %s", patience, what)
	}
}

// object is what a test knows of an object that it made.
type object struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
}

func (o object) String() string {
	return fmt.Sprintf("%s %s/%s", o.resource.Resource, o.namespace, o.name)
}

// ref is a reference to the object; blocking if it is held for the dependent.
func (o object) ref(blocking bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: o.resource.GroupVersion().String(), Kind: kindNames[o.resource], Name: o.name, UID: o.uid, BlockOwnerDeletion: &blocking,
	}
}

func (f *fixture) create(resource schema.GroupVersionResource, namespace, name string, references ...metav1.OwnerReference) object {
	f.Helper()
	return f.createWith(resource, metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: references})
}

func (f *fixture) createWith(resource schema.GroupVersionResource, meta metav1.ObjectMeta) object {
	f.Helper()
	var created metav1.Object
	var err error
	ctx, options := f.Context(), metav1.CreateOptions{}
	switch resource {
	case configMaps:
		created, err = f.client.CoreV1().ConfigMaps(meta.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, options)
	case pods:
		created, err = f.client.CoreV1().Pods(meta.Namespace).Create(ctx, &corev1.Pod{ObjectMeta: meta}, options)
	case nodes:
		created, err = f.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, options)
	case deployments:
		created, err = f.client.AppsV1().Deployments(meta.Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta}, options)
	case replicaSets:
		created, err = f.client.AppsV1().ReplicaSets(meta.Namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta}, options)
	}
	if err != nil {
		f.Fatalf("creating %s %s/%s: %v", resource.Resource, meta.Namespace, meta.Name, err)
	}
	return object{resource: resource, namespace: meta.Namespace, name: meta.Name, uid: created.GetUID()}
}

// settle waits until the graph has all objects and references that there are.
func (f *fixture) settle() {
	f.Helper()
	f.eventually("the graph has what the server has", func() bool {
		want := f.all()
		f.collector.graph.mu.Lock()
		defer f.collector.graph.mu.Unlock()
		got := maps.Clone(f.collector.graph.nodes)
		for uid, object := range want {
			n := got[uid]
			if n == nil || !cmp.Equal(n.owners, object.OwnerReferences, cmpopts.EquateEmpty()) {
				return false
			}
			delete(got, uid)
		}
		return len(got) == 0
	})
}

// all lists the objects of the server.
func (f *fixture) all() map[types.UID]metav1.PartialObjectMetadata {
	f.Helper()
	all := map[types.UID]metav1.PartialObjectMetadata{}
	for resource := range kindNames {
		list, err := f.metadata.Resource(resource).List(f.Context(), metav1.ListOptions{})
		if err != nil {
			f.Fatal(err)
		}
		for _, item := range list.Items {
			all[item.UID] = item
		}
	}
	return all
}

func (f *fixture) delete(o object, policy metav1.DeletionPropagation) {
	f.Helper()
	err := f.metadata.Resource(o.resource).Namespace(o.namespace).Delete(f.Context(), o.name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		f.Fatalf("deleting %s: %v", o, err)
	}
}

func (f *fixture) patch(o object, patch string) {
	f.Helper()
	_, err := f.metadata.Resource(o.resource).Namespace(o.namespace).Patch(f.Context(), o.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		f.Fatalf("patching %s: %v", o, err)
	}
}

func (f *fixture) get(o object) *metav1.PartialObjectMetadata {
	f.Helper()
	got, err := f.metadata.Resource(o.resource).Namespace(o.namespace).Get(f.Context(), o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		f.Fatal(err)
	case got.UID != o.uid:
		return nil
	}
	return got
}

func (f *fixture) gone(objects ...object) {
	f.Helper()
	for _, o := range objects {
		f.eventually(o.String()+" is gone", func() bool { return f.get(o) == nil })
	}
}

// there checks that the objects exist, are not being deleted, and have just
// these owners.
func (f *fixture) there(owners []object, objects ...object) {
	f.Helper()
	var want []types.UID
	for _, owner := range owners {
		want = append(want, owner.uid)
	}
	for _, o := range objects {
		f.eventually(fmt.Sprintf("%s has the owners %v", o, owners), func() bool {
			got := f.get(o)
			if got == nil || got.DeletionTimestamp != nil {
				f.Fatalf("%s: %v", o, got)
			}
			var uids []types.UID
			for _, reference := range got.OwnerReferences {
				uids = append(uids, reference.UID)
			}
			return slices.Equal(uids, want)
		})
	}
}
