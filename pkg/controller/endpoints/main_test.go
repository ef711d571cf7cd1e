// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func TestMain(m *testing.M) {
	kube.DiscardLogs()
	goleak.VerifyTestMain(m)
}

func build(client kubernetes.Interface, factory informers.SharedInformerFactory) (*Controller, error) {
	return New(client.CoreV1(), nil, factory.Core().V1().Services(), factory.Core().V1().Pods(), factory.Core().V1().Endpoints())
}

func start(t *testing.T, cluster *kube.Cluster) *kube.Running {
	t.Helper()
	return kube.Start(t, cluster, build)
}

// stopQueue ends what New has started, for a controller that does not run.
func (c *Controller) stopQueue() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.queue.Run(ctx, 0)
}
