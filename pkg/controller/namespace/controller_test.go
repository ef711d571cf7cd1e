// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/test/kinds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// changedDiscovery changes what the server tells of itself.
type changedDiscovery struct {
	Discovery
	change func([]*metav1.APIResourceList) ([]*metav1.APIResourceList, error)
}

func (d *changedDiscovery) ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error) {
	lists, err := d.Discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil || d.change == nil {
		return lists, err
	}
	return d.change(lists)
}

type fixture struct {
	*testing.T
	server     *kinds.Server
	client     kubernetes.Interface
	discovery  *changedDiscovery
	factory    informers.SharedInformerFactory
	controller *Controller
}

func newFixture(t *testing.T, options Options) *fixture {
	t.Helper()
	f := &fixture{T: t, server: kinds.Start(t)}
	f.client = kubernetes.NewForConfigOrDie(f.server.Config)
	f.discovery = &changedDiscovery{Discovery: discovery.ToDiscoveryInterfaceWithContext(f.client.Discovery())}
	f.factory = informers.NewSharedInformerFactory(f.client, 0)
	controller, err := New(f.factory.Core().V1().Namespaces(), f.client.CoreV1(), metadata.NewForConfigOrDie(f.server.Config), f.discovery, options)
	if err != nil {
		t.Fatal(err)
	}
	f.controller = controller
	return f
}

// terminating makes a namespace with content and deletes it.
func (f *fixture) terminating(name string, finalizers []corev1.FinalizerName, content ...metav1.Object) {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NamespaceSpec{Finalizers: finalizers}}
	if _, err := f.client.CoreV1().Namespaces().Create(f.Context(), namespace, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	for _, object := range content {
		var err error
		switch object := object.(type) {
		case *corev1.Pod:
			_, err = f.client.CoreV1().Pods(name).Create(f.Context(), object, metav1.CreateOptions{})
		case *corev1.ConfigMap:
			_, err = f.client.CoreV1().ConfigMaps(name).Create(f.Context(), object, metav1.CreateOptions{})
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	if err := f.client.CoreV1().Namespaces().Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) sync(name string, wantWaiting bool) {
	f.Helper()
	waiting, err := f.controller.sync(f.Context(), name)
	if err != nil || waiting != wantWaiting {
		f.Fatalf("sync: waiting %v, %v; want waiting %v", waiting, err, wantWaiting)
	}
}

// namespace returns nil if it is gone.
func (f *fixture) namespace(name string) *corev1.Namespace {
	f.Helper()
	namespace, err := f.client.CoreV1().Namespaces().Get(f.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		f.Fatal(err)
	}
	return namespace
}

// troubles returns the conditions that are true, "type reason: message".
func (f *fixture) troubles(name string) []string {
	f.Helper()
	namespace := f.namespace(name)
	if namespace == nil {
		f.Fatalf("namespace %s is gone", name)
	}
	if len(namespace.Status.Conditions) != 5 {
		f.Errorf("%d conditions, want 5", len(namespace.Status.Conditions))
	}
	var troubles []string
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			troubles = append(troubles, string(c.Type)+" "+c.Reason+": "+c.Message)
		}
	}
	return troubles
}

func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
}

func pod(name, node string, grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace},
	}
}

func TestEmptiesNamespaceAndLetsItGo(t *testing.T) {
	f := newFixture(t, Options{})
	f.terminating("a", nil, configMap("x"), configMap("y"), pod("p", "", 30))
	if _, err := f.client.CoreV1().ConfigMaps("b").Create(t.Context(), configMap("other"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := len(f.server.Writes())
	f.sync("a", false)
	if f.namespace("a") != nil {
		t.Error("the namespace is still there")
	}
	if list, err := f.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "other" {
		t.Errorf("left: %v, %v; want the one of the other namespace", list, err)
	}
	want := []string{
		"DELETE /api/v1/namespaces/a/pods",
		"DELETE /api/v1/namespaces/a/configmaps",
		"PUT /api/v1/namespaces/a/status",
		"PUT /api/v1/namespaces/a/finalize",
	}
	if diff := cmp.Diff(want, f.server.Writes()[before:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	f.sync("a", false) // of a namespace that is gone
}

func TestLeavesActiveNamespaceAlone(t *testing.T) {
	f := newFixture(t, Options{})
	if _, err := f.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := len(f.server.Writes())
	f.sync("a", false)
	if got := f.server.Writes()[before:]; len(got) > 0 {
		t.Errorf("writes: %v", got)
	}
}

func TestWaitsForFinalizersOfContent(t *testing.T) {
	f := newFixture(t, Options{})
	f.terminating("a", nil, configMap("x", "example.com/f"), configMap("y", "example.com/f", "example.com/g"), configMap("z"))
	f.sync("a", true)
	want := []string{
		"NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances",
		"NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: " +
			"example.com/f in 2 resource instances, example.com/g in 1 resource instances",
	}
	if diff := cmp.Diff(want, f.troubles("a")); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}

	// Objects that are being deleted are asked for again, the status is not written again.
	before, version := len(f.server.Writes()), f.namespace("a").ResourceVersion
	f.sync("a", true)
	if got := f.server.Writes()[before:]; slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "PUT") }) {
		t.Errorf("writes of a round without news: %v", got)
	}
	if got := f.namespace("a").ResourceVersion; got != version {
		t.Errorf("resourceVersion %s, was %s", got, version)
	}

	for _, name := range []string{"x", "y"} {
		if _, err := f.client.CoreV1().ConfigMaps("a").Update(t.Context(), configMap(name), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.sync("a", false)
	if f.namespace("a") != nil {
		t.Error("the namespace is still there")
	}
}

func TestKeepsFinalizersOfOthers(t *testing.T) {
	f := newFixture(t, Options{})
	f.terminating("a", []corev1.FinalizerName{"example.com/f"}, configMap("x"))
	f.sync("a", false)
	namespace := f.namespace("a")
	if namespace == nil {
		t.Fatal("the namespace is gone")
	}
	if diff := cmp.Diff([]corev1.FinalizerName{"example.com/f"}, namespace.Spec.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if got := f.troubles("a"); len(got) > 0 {
		t.Errorf("conditions: %v", got)
	}
	before := len(f.server.Writes())
	f.sync("a", false)
	if got := f.server.Writes()[before:]; len(got) > 0 {
		t.Errorf("writes of a round without news: %v", got)
	}
}

func TestPodsOnNodesHaveTheirGracePeriod(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	f := newFixture(t, Options{Clock: clock})
	f.terminating("a", nil, pod("p", "node1", 60), configMap("x"))
	f.sync("a", true)
	want := []string{"NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"}
	if diff := cmp.Diff(want, f.troubles("a")); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if list, err := f.client.CoreV1().ConfigMaps("a").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("deleted before the pods have ended: %v, %v", list, err)
	}

	clock.Step(2 * time.Minute)
	if _, err := f.controller.sync(t.Context(), "a"); err == nil {
		t.Error("a pod that outlives its time is no error")
	}
	if got := f.troubles("a"); len(got) != 2 || !strings.HasPrefix(got[0], "NamespaceDeletionContentFailure ContentDeletionFailed: ") {
		t.Errorf("conditions: %v", got)
	}

	// What a kubelet does in the end.
	if err := f.client.CoreV1().Pods("a").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	f.sync("a", false)
	if f.namespace("a") != nil {
		t.Error("the namespace is still there")
	}
}

func TestPodsWithoutKubeletGoAtOnce(t *testing.T) {
	f := newFixture(t, Options{PodGracePeriodSeconds: ptr.To[int64](0)})
	f.terminating("a", nil, pod("p", "node1", 60))
	f.sync("a", false)
	if f.namespace("a") != nil {
		t.Error("the namespace is still there")
	}
}

func TestStaysWhileDiscoveryFails(t *testing.T) {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	tests := []struct {
		name   string
		change func([]*metav1.APIResourceList) ([]*metav1.APIResourceList, error)
		want   []string
		emptys bool // whether what could be discovered is deleted
	}{
		{
			name: "a group",
			change: func(lists []*metav1.APIResourceList) ([]*metav1.APIResourceList, error) {
				return lists, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{group: errors.New("away")}}
			},
			want: []string{"NamespaceDeletionDiscoveryFailure DiscoveryFailed: Discovery failed for some groups, 1 failing: " +
				"unable to retrieve the complete list of server APIs: example.com/v1: away"},
			emptys: true,
		},
		{
			name:   "all",
			change: func([]*metav1.APIResourceList) ([]*metav1.APIResourceList, error) { return nil, errors.New("away") },
			want:   []string{"NamespaceDeletionDiscoveryFailure DiscoveryFailed: away"},
		},
		{
			name:   "an empty answer",
			change: func([]*metav1.APIResourceList) ([]*metav1.APIResourceList, error) { return nil, nil },
			want:   []string{"NamespaceDeletionDiscoveryFailure DiscoveryFailed: no resource with the verb delete was discovered"},
		},
		{
			name: "a version that cannot be parsed",
			change: func(lists []*metav1.APIResourceList) ([]*metav1.APIResourceList, error) {
				return append(lists, &metav1.APIResourceList{GroupVersion: "a/b/c"}), nil
			},
			want:   []string{"NamespaceDeletionGroupVersionParsingFailure GroupVersionParsingFailed: unexpected GroupVersion string: a/b/c"},
			emptys: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, Options{})
			f.terminating("a", nil, configMap("x"))
			f.discovery.change = test.change
			if _, err := f.controller.sync(t.Context(), "a"); err == nil {
				t.Error("no error")
			}
			if diff := cmp.Diff(test.want, f.troubles("a")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			list, err := f.client.CoreV1().ConfigMaps("a").List(t.Context(), metav1.ListOptions{})
			if err != nil || (len(list.Items) == 0) != test.emptys {
				t.Errorf("left: %v, %v", list, err)
			}
			f.discovery.change = nil
			f.sync("a", false)
			if f.namespace("a") != nil {
				t.Error("the namespace is still there")
			}
		})
	}
}

func TestFindsWhatCanBeDone(t *testing.T) {
	withVerbs := func(verbs ...string) func([]*metav1.APIResourceList) ([]*metav1.APIResourceList, error) {
		return func(lists []*metav1.APIResourceList) ([]*metav1.APIResourceList, error) {
			for _, list := range lists {
				for i := range list.APIResources {
					if list.APIResources[i].Name == "configmaps" {
						list.APIResources[i].Verbs = verbs
					}
				}
				// A kind that went away after its discovery.
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: "ghosts", Namespaced: true, Verbs: []string{"list", "delete", "deletecollection"}})
			}
			return lists, nil
		}
	}
	tests := []struct {
		name  string
		verbs []string
		left  int
	}{
		{"one by one", []string{"list", "delete"}, 0},
		{"unseen", []string{"delete", "deletecollection"}, 0},
		{"not at all", []string{"list", "get"}, 2},
		{"by name only", []string{"delete"}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, Options{})
			f.terminating("a", nil, configMap("x"), configMap("y"))
			f.discovery.change = withVerbs(test.verbs...)
			f.sync("a", false)
			list, err := f.client.CoreV1().ConfigMaps("a").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != test.left {
				t.Errorf("left: %v, %v; want %d", list, err, test.left)
			}
		})
	}
}

func TestRunFollowsNamespaces(t *testing.T) {
	f := newFixture(t, Options{PodGracePeriodSeconds: ptr.To[int64](0)})
	f.terminating("early", nil, configMap("x"))

	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	f.factory.Start(ctx.Done())
	go func() { stopped <- f.controller.Run(ctx, 2) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		f.factory.Shutdown()
	}()
	f.terminating("late", nil, configMap("x"), pod("p", "node1", 30))
	f.terminating("held", nil, configMap("x", "example.com/f"))
	gone := func(name string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
			return f.namespace(name) == nil, nil
		})
		if err != nil {
			t.Fatalf("%s: %v: %v", name, err, f.troubles(name))
		}
	}
	gone("early")
	gone("late")
	if f.namespace("held") == nil {
		t.Fatal("gone in spite of a finalizer")
	}
	if _, err := f.client.CoreV1().ConfigMaps("held").Update(ctx, configMap("x"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	gone("held")
}

func TestRunEndsWithItsContext(t *testing.T) {
	f := newFixture(t, Options{})
	f.controller.synced = func() bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.controller.Run(ctx, 1); err != nil {
		t.Error(err)
	}
}
