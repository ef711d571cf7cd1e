// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// startView starts a server without controllers, with the view of node a, which
// shares no unit with node b.
func startView(t *testing.T, objects ...runtime.Object) (upstream, view kubernetes.Interface) {
	t.Helper()
	server, upstream := start(t, testserver.Options{
		Node: newNode("a", map[string]string{"zone1": "unit1"}), WithoutControllers: true,
		Objects: append(objects, newNode("b", map[string]string{"zone1": "unit2"})),
	})
	return upstream, newClient(t, server.View)
}

// inView fails the test unless a revision is one of the view.
func inView(t *testing.T, what string, object metav1.Object) {
	t.Helper()
	if !body.IsViewRevision(object.GetResourceVersion()) {
		t.Errorf("%s: revision %s of %s is none of the view", what, object.GetResourceVersion(), object.GetName())
	}
}

// Each step reads what the step before has written, without waiting for it.
func TestWritesThroughTheViewAreReadAtOnce(t *testing.T) {
	t.Parallel()
	_, view := startView(t)
	services := view.CoreV1().Services("default")
	var last *corev1.Service
	read := func(what string, written *corev1.Service, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		inView(t, what, written)
		if last, err = services.Get(t.Context(), written.Name, metav1.GetOptions{}); err != nil {
			t.Fatalf("reading after %s: %v", what, err)
		}
		if last.ResourceVersion != written.ResourceVersion {
			t.Errorf("after %s: read revision %s, the answer had %s", what, last.ResourceVersion, written.ResourceVersion)
		}
		if diff := cmp.Diff(written, last); diff != "" {
			t.Errorf("after %s: (-answer +read)\n%s", what, diff)
		}
	}
	options := metav1.PatchOptions{FieldManager: "test"}
	written, err := services.Create(t.Context(), newService("web", nil), metav1.CreateOptions{})
	read("create", written, err)
	last.Labels = map[string]string{"a": "b"}
	written, err = services.Update(t.Context(), last, metav1.UpdateOptions{})
	read("update", written, err)
	last.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Test", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
	written, err = services.UpdateStatus(t.Context(), last, metav1.UpdateOptions{})
	read("update of the status", written, err)
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"metadata":{"resourceVersion":%q,"annotations":{"merge":"1"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"resourceVersion":%q,"annotations":{"strategic":"1"}}}`,
		types.JSONPatchType:           `[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"add","path":"/metadata/labels/json","value":"1"}]`,
	} {
		written, err = services.Patch(t.Context(), "web", kind, fmt.Appendf(nil, patch, last.ResourceVersion), metav1.PatchOptions{})
		read(string(kind), written, err)
	}
	written, err = services.Patch(t.Context(), "web", types.ApplyYAMLPatchType, fmt.Appendf(nil,
		"apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  resourceVersion: %q # of the view\n  labels: {c: d}\n", last.ResourceVersion), options)
	read("apply in YAML", written, err)
	written, err = services.Apply(t.Context(), applycorev1.Service("web", "default").WithLabels(map[string]string{"c": "e"}), metav1.ApplyOptions{FieldManager: "test"})
	read("apply", written, err)

	dry, err := services.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"c":"f"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
	if err != nil || dry.ResourceVersion != last.ResourceVersion || dry.Labels["c"] != "f" {
		t.Errorf("dry run: %v, %+v", err, dry)
	}
	read("dry run", last, nil)

	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
		t.Error(err)
	}
	read("dry run of a delete", last, nil)
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &last.UID, ResourceVersion: &last.ResourceVersion}}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after delete: %v", err)
	}
}

// releasedByMany has several clients take the last finalizer away at once: those
// that come too late read at once that there is nothing.
func releasedByMany(t *testing.T, view kubernetes.Interface, service *corev1.Service) {
	t.Helper()
	services := view.CoreV1().Services("default")
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := services.Delete(t.Context(), service.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			_, err := services.Patch(t.Context(), service.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
			if found, after := services.Get(t.Context(), service.Name, metav1.GetOptions{}); !apierrors.IsNotFound(after) {
				t.Errorf("read after a client's patch (%v): %+v, %v", err, found, after)
			}
		})
	}
	clients.Wait()
}

// Upstream deletes while it updates, and its answer has the revision from before.
func TestLastFinalizersThroughTheView(t *testing.T) {
	t.Parallel()
	upstream, view := startView(t)
	none := []byte(`{"metadata":{"finalizers":null}}`)
	for i := range 20 {
		name := fmt.Sprint("web-", i)
		service := newService(name, nil)
		service.Finalizers = []string{"example.org/held"}
		if _, err := view.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := view.CoreV1().Services("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if held, err := view.CoreV1().Services("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil || held.DeletionTimestamp == nil {
			t.Fatalf("with a finalizer: %+v, %v", held, err)
		}
		released, err := view.CoreV1().Services("default").Patch(t.Context(), name, types.MergePatchType, none, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inView(t, "the answer", released)
		if found, err := view.CoreV1().Services("default").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("read after the last finalizer was taken away: %+v, %v", found, err)
		}
		releasedByMany(t, view, service)

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: service.Finalizers}}
		if _, err := view.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := view.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			namespace, err = view.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if err != nil || namespace.DeletionTimestamp == nil || len(namespace.Spec.Finalizers) > 0 {
				return fmt.Sprintf("it is not only held by its own finalizer: %+v, %v", namespace, err)
			}
			return ""
		})
		if i%2 == 0 {
			_, err = view.CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, none, metav1.PatchOptions{})
		} else {
			namespace.Finalizers = nil
			_, err = view.CoreV1().Namespaces().Finalize(t.Context(), namespace, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if found, err := view.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("read after the end of the namespace: %+v, %v", found, err)
		}
	}
	if left, err := upstream.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{LabelSelector: "!component"}); err != nil || len(left.Items) > 0 {
		t.Errorf("left upstream: %+v, %v", left, err)
	}
}

func TestConflictsThroughTheView(t *testing.T) {
	t.Parallel()
	upstream, view := startView(t)
	services := view.CoreV1().Services("default")
	first, err := services.Create(t.Context(), newService("web", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upstream.CoreV1().Services("default").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"other"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	first.Labels = map[string]string{"by": "us"}
	attempts := map[string]func() error{
		"update": func() error { return touched(services.Update(t.Context(), first, metav1.UpdateOptions{})) },
		"patch": func() error {
			return touched(services.Patch(t.Context(), "web", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"labels":{"by":"us"}}}`, first.ResourceVersion), metav1.PatchOptions{}))
		},
		"delete": func() error {
			return services.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &first.ResourceVersion}})
		},
		"update with a revision of a former process": func() error {
			former := first.DeepCopy()
			former.ResourceVersion = strconv.FormatUint(body.MinViewRevision+5, 10)
			return touched(services.Update(t.Context(), former, metav1.UpdateOptions{}))
		},
		"update with a revision that is still to come": func() error {
			future := first.DeepCopy()
			future.ResourceVersion = strconv.FormatUint(2*body.MinViewRevision, 10)
			return touched(services.Update(t.Context(), future, metav1.UpdateOptions{}))
		},
	}
	for name, attempt := range attempts {
		if err := attempt(); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	// A refused update is followed too: what is read next is what it conflicted with.
	second, err := services.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || second.Labels["by"] != "other" {
		t.Fatalf("read %v, %v", second.Labels, err)
	}
	if _, err := services.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := services.Create(t.Context(), newService("web", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
}

func TestCollectionsDeletedThroughTheViewAreGone(t *testing.T) {
	t.Parallel()
	_, view := startView(t)
	slices := view.DiscoveryV1().EndpointSlices("default")
	for i := range 5 {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", i), Labels: map[string]string{"mine": "yes"}}, AddressType: discoveryv1.AddressTypeIPv4}
		if _, err := slices.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mine := metav1.ListOptions{LabelSelector: "mine=yes"}
	if err := slices.DeleteCollection(t.Context(), metav1.DeleteOptions{}, mine); err != nil {
		t.Fatal(err)
	}
	if left, err := slices.List(t.Context(), mine); err != nil || len(left.Items) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Objects with upstream's own revisions are followed as well.
func TestNamespacesCreatedThroughTheViewAreReadAtOnce(t *testing.T) {
	t.Parallel()
	_, view := startView(t)
	namespaces := view.CoreV1().Namespaces()
	for i := range 10 {
		name := fmt.Sprint("n-", i)
		created, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		read, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || read.ResourceVersion != created.ResourceVersion {
			t.Errorf("read %v, %v, want revision %s", read, err, created.ResourceVersion)
		}
	}
}

func TestFilteredObjectsThroughTheView(t *testing.T) {
	t.Parallel()
	endpoint := func(node, address string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{NodeName: &node, Addresses: []string{address}}
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint("a", "10.0.0.1"), endpoint("b", "10.0.0.2")},
	}
	upstream, view := startView(t, newService("web", map[string]string{"topologyKeys": `["zone1"]`}), slice)
	slices := view.DiscoveryV1().EndpointSlices("default")
	read, err := slices.Get(t.Context(), "web-1", metav1.GetOptions{})
	if err != nil || len(read.Endpoints) != 1 {
		t.Fatalf("read %v, %v", read, err)
	}
	for name, attempt := range map[string]func() error{
		"update": func() error { return touched(slices.Update(t.Context(), read, metav1.UpdateOptions{})) },
		"patch": func() error {
			return touched(slices.Patch(t.Context(), "web-1", types.MergePatchType, []byte(`{"endpoints":[]}`), metav1.PatchOptions{}))
		},
	} {
		if err := attempt(); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it to be invalid", name, err)
		}
	}
	// It is about the revision that was read, and changes nothing that is filtered.
	label := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"labels":{"color":"blue"}}}`, read.ResourceVersion)
	labelled, err := slices.Patch(t.Context(), "web-1", types.MergePatchType, label, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The answer shows what the view does not, so it is not at a revision of the view, which stands for another content.
	if body.IsViewRevision(labelled.ResourceVersion) || len(labelled.Endpoints) != 2 {
		t.Errorf("answer: %+v", labelled)
	}
	if read, err = slices.Get(t.Context(), "web-1", metav1.GetOptions{}); err != nil || read.Labels["color"] != "blue" || len(read.Endpoints) != 1 {
		t.Errorf("read %v, %v", read, err)
	}
	if whole, err := upstream.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "web-1", metav1.GetOptions{}); err != nil || len(whole.Endpoints) != 2 {
		t.Errorf("upstream has %v, %v", whole, err)
	}
	if err := slices.Delete(t.Context(), "web-1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &read.ResourceVersion}}); err != nil {
		t.Error(err)
	}
}

// What only other managers' fields tell apart is a conflict too.
func TestOwnershipIsNotLostThroughTheView(t *testing.T) {
	t.Parallel()
	upstream, view := startView(t, newService("web", nil))
	apply := func(manager string, client kubernetes.Interface) *corev1.Service {
		applied, err := client.CoreV1().Services("default").Apply(t.Context(), applycorev1.Service("web", "default").WithLabels(map[string]string{"shared": "1"}), metav1.ApplyOptions{FieldManager: manager})
		if err != nil {
			t.Fatal(err)
		}
		return applied
	}
	apply("first", view)
	old := apply("one", view)
	if shown, err := view.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil || cmp.Diff(old, shown) != "" {
		t.Errorf("what the answer says (-) and what is shown (+), %v:\n%s", err, cmp.Diff(old, shown))
	}
	apply("two", upstream)
	// As kubectl apply --server-side makes it to take over what was applied on the client.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": old.ManagedFields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": old.ResourceVersion},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Whether the view has heard of the other manager or not: the first conflict waits for that.
	for range 2 {
		if _, err := view.CoreV1().Services("default").Patch(t.Context(), "web", types.JSONPatchType, patch, metav1.PatchOptions{}); !apierrors.IsConflict(err) {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	old.Annotations = map[string]string{"edited": "yes"}
	for range 2 {
		if _, err := view.CoreV1().Services("default").Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	retried, err := view.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	retried.Annotations = map[string]string{"edited": "yes"}
	updated, err := view.CoreV1().Services("default").Update(t.Context(), retried, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managers := map[string]bool{}
	for _, entry := range updated.ManagedFields {
		managers[entry.Manager] = true
	}
	if !managers["first"] || !managers["one"] || !managers["two"] {
		t.Errorf("managers %v", managers)
	}
}

// Who may not write hears nothing of what there is, and has nothing followed.
func TestStrangersLearnNothingOfTheView(t *testing.T) {
	t.Parallel()
	server, _ := start(t, testserver.Options{Node: newNode("a", map[string]string{"zone1": "unit1"}), WithoutControllers: true})
	stranger := rest.AnonymousClientConfig(server.View)
	stranger.BearerToken = "made-up"
	client := newClient(t, stranger)
	for _, name := range []string{"kubernetes", "missing"} {
		endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}} //nolint:staticcheck // SA1019: still served
		if _, err := client.CoreV1().Endpoints("default").Update(t.Context(), endpoints, metav1.UpdateOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v, want 401", name, err)
		}
	}
}

// A watch from the revision in an answer goes on from there.
func TestWatchFromTheRevisionOfAnAnswer(t *testing.T) {
	t.Parallel()
	_, view := startView(t)
	services := view.CoreV1().Services("default")
	created, err := services.Create(t.Context(), newService("web", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := services.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if _, err := services.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MODIFIED", "DELETED"} {
		event := <-watching.ResultChan()
		if string(event.Type) != want {
			t.Fatalf("got %s %v, want %s", event.Type, event.Object, want)
		}
	}
}

// TestCountersThroughTheView is optimistic locking: no increment is lost, though
// the view changes all the time and lags behind.
func TestCountersThroughTheView(t *testing.T) {
	t.Parallel()
	const writers, increments = 8, 25
	upstream, view := startView(t, newService("web", map[string]string{"topologyKeys": `["zone1"]`}))
	ctx, cancel := context.WithCancel(t.Context())
	var flips, work sync.WaitGroup
	flips.Go(func() {
		for unit := 0; ctx.Err() == nil; unit++ {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"zone1":"unit%d"}}}`, unit%2)
			if _, err := upstream.CoreV1().Nodes().Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	for range writers {
		work.Go(func() {
			for range increments {
				if err := increment(ctx, view); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	cancel()
	flips.Wait()
	service, err := view.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || service.Annotations["count"] != strconv.Itoa(writers*increments) {
		t.Errorf("counted %q, want %d: %v", service.Annotations["count"], writers*increments, err)
	}
}

// increment adds one to a counter, as often as it takes.
func increment(ctx context.Context, client kubernetes.Interface) error {
	for {
		service, err := client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		count, _ := strconv.Atoi(service.Annotations["count"])
		service.Annotations["count"] = strconv.Itoa(count + 1)
		_, err = client.CoreV1().Services("default").Update(ctx, service, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
