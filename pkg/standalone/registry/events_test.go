// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// What is written through one group is read, watched and deleted through the other.
func TestEventsOfBothGroupsAreOne(t *testing.T) {
	s := newServer(t)
	core, events := s.clients.CoreV1().Events("default"), s.clients.EventsV1().Events("default")
	empty, err := events.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := core.Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: empty.ResourceVersion, FieldSelector: "involvedObject.name=web,reportingComponent=example.com/agent",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	made, err := events.Create(t.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: "one"},
		EventTime:           metav1.NowMicro(),
		Regarding:           corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"},
		ReportingController: "example.com/agent",
		ReportingInstance:   "a",
		Action:              "Act",
		Reason:              "Because",
		Note:                "a note",
		Type:                "Normal",
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := core.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if read.UID != made.UID || read.Message != "a note" || read.InvolvedObject.Name != "web" || read.ResourceVersion != made.ResourceVersion {
		t.Errorf("read through core: %+v", read)
	}
	select {
	case event := <-w.ResultChan():
		seen, ok := event.Object.(*corev1.Event)
		if event.Type != watch.Added || !ok || seen.UID != made.UID {
			t.Errorf("watched through core: %v %+v", event.Type, event.Object)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came on the watch")
	}

	for selector, want := range map[string]int{
		"regarding.name=web": 1, "regarding.name=other": 0, "reportingController=example.com/agent": 1, "reason=Because,type=Normal": 1,
	} {
		list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("%s selects %d events, want %d", selector, len(list.Items), want)
		}
	}
	if _, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=web"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field of the other group: %v", err)
	}

	// An old recorder counts by a patch.
	patched, err := core.Patch(t.Context(), "one", types.StrategicMergePatchType, []byte(`{"count":5}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := events.Get(t.Context(), "one", metav1.GetOptions{}); err != nil || got.DeprecatedCount != 5 || got.ResourceVersion != patched.ResourceVersion {
		t.Errorf("after a patch through core: %+v, %v", got, err)
	}
	if err := events.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted through the other group: %v", err)
	}
}
