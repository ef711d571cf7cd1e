// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPodDeletion(t *testing.T) {
	s := newServer(t)
	pods := s.clients.CoreV1().Pods("default")
	for _, test := range []struct {
		name    string
		node    string
		phase   corev1.PodPhase
		options metav1.DeleteOptions
		stays   *int64 // the grace period of one that waits for its kubelet
	}{
		{name: "without a node"},
		{name: "on a node", node: "node1", stays: ptr.To[int64](30)},
		{name: "on a node, with a period", node: "node1", options: metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}, stays: ptr.To[int64](5)},
		{name: "on a node, now", node: "node1", options: metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}},
		{name: "on a node, failed", node: "node1", phase: corev1.PodFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, err := pods.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
				Spec:       corev1.PodSpec{NodeName: test.node, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if pod.Status.Phase != corev1.PodPending || pod.Status.QOSClass != corev1.PodQOSBestEffort {
				t.Errorf("status %+v", pod.Status)
			}
			if test.phase != "" {
				pod.Status.Phase = test.phase
				if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := pods.Delete(t.Context(), pod.Name, test.options); err != nil {
				t.Fatal(err)
			}
			got, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
			if test.stays == nil {
				if !apierrors.IsNotFound(err) {
					t.Errorf("got %v, want it gone", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.DeletionTimestamp == nil || got.DeletionGracePeriodSeconds == nil || *got.DeletionGracePeriodSeconds != *test.stays {
				t.Errorf("deletion %v, grace period %v", got.DeletionTimestamp, got.DeletionGracePeriodSeconds)
			}
			// Its kubelet would confirm like this.
			if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
			if _, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("got %v, want it gone", err)
			}
		})
	}
}

func TestPodFieldSelectors(t *testing.T) {
	s := newServer(t)
	pods := s.clients.CoreV1().Pods("default")
	for name, node := range map[string]string{"a": "node1", "b": "node2", "c": ""} {
		pod, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: "runner", Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "a" {
			pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
			if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for selector, want := range map[string]string{
		"spec.nodeName=node1": "a", "spec.nodeName=": "c", "spec.nodeName!=node1,spec.nodeName!=": "b", "spec.host=node2": "b",
		"status.phase=Running": "a", "status.podIP=10.0.0.1": "a", "metadata.name=b": "b", "spec.serviceAccountName=other": "",
		"spec.restartPolicy=Always,spec.schedulerName=default-scheduler,spec.hostNetwork=false,status.phase=Running": "a",
	} {
		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for i := range list.Items {
			got += list.Items[i].Name
		}
		if got != want {
			t.Errorf("%s selects %q, want %q", selector, got, want)
		}
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.hostname=a"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field: %v", err)
	}
}
