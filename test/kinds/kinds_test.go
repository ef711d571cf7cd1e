// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/grid-apiserver/grid-apiserver/test/kinds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServesKinds(t *testing.T) {
	server := kinds.Start(t)
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/f"}}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	metadataClient, err := metadata.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	configmaps := metadataClient.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	watch, err := configmaps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if event := <-watch.ResultChan(); event.Object.(*metav1.PartialObjectMetadata).Name != "a" {
		t.Errorf("watched %v", event)
	}
	foreground := metav1.DeletePropagationForeground
	if err := configmaps.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	got, err := configmaps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.DeletionTimestamp == nil || len(got.Finalizers) != 2 {
		t.Fatalf("after the deletion: %v, %v", got, err)
	}
	if _, err := configmaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(server.Config).ServerPreferredResourcesWithContext(t.Context())
	if err != nil || len(lists) != 2 {
		t.Errorf("discovered %v, %v", lists, err)
	}
	if got := server.Writes(); len(got) != 3 {
		t.Errorf("writes: %v", got)
	}
}
