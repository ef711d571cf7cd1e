// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// TestControllerAgainstAServer is the test that a user would write for podLabeler.
func TestControllerAgainstAServer(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newPod("early", "n1", "10.0.0.1", nil)}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- newPodLabeler(client).run(ctx) }()
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), newPod("late", "n2", "10.0.0.2", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"early": "n1", "late": "n2"} {
		eventually(t, func(ctx context.Context) string {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil || pod.Labels[nodeLabel] != want {
				return fmt.Sprintf("Pod %s has the labels %v, error %v", name, pod.Labels, err)
			}
			return ""
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
