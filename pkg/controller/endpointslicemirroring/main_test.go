// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"testing"

	"go.uber.org/goleak"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

func TestMain(m *testing.M) {
	kube.DiscardLogs()
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, cluster *kube.Cluster) *kube.Running {
	t.Helper()
	return startWith(t, cluster, nil)
}

func startWith(t *testing.T, cluster *kube.Cluster, recorder record.EventRecorder) *kube.Running {
	t.Helper()
	return kube.Start(t, cluster, func(client kubernetes.Interface, factory informers.SharedInformerFactory) (*Controller, error) {
		return New(client.DiscoveryV1(), recorder,
			factory.Core().V1().Services(), factory.Core().V1().Endpoints(), factory.Discovery().V1().EndpointSlices())
	})
}
