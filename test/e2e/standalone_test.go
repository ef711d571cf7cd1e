// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// TestStandaloneUpstream repeats the tests of the topology with an upstream without etcd: on each node the real
// kube-proxy, through a grid-apiserver, and all of them on one grid-apiserver --standalone.
func TestStandaloneUpstream(t *testing.T) {
	standalone, err := lab.Start(t.Context(), lab.Options{Upstream: lab.Standalone, Report: t.Logf})
	must(t, err)
	before := cluster
	cluster = standalone // no test runs beside this one
	t.Cleanup(func() {
		cluster = before
		if err := standalone.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs of all programs are in %s", standalone.Logs)
		} else if err := standalone.RemoveFiles(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Service is closed over its node unit", TestServiceIsClosedOverItsNodeUnit)
	t.Run("changes reach kube-proxy without a restart", TestChangesReachKubeProxyWithoutARestart)
	t.Run("a ServiceGrid and its pods make a closed Service", aServiceGridAndItsPodsMakeAClosedService)
}

// aServiceGridAndItsPodsMakeAClosedService leaves everything between the pods and the rules to the controllers.
func aServiceGridAndItsPodsMakeAClosedService(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	file := filepath.Join(t.TempDir(), "grid.yaml")
	must(t, os.WriteFile(file, []byte(`
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: chain}
spec:
  gridUniqKey: `+lab.ZoneLabel+`
  template:
    selector: {app: chain}
    ports: [{port: 80, targetPort: 8080}]
`), 0o600))
	_, err := cluster.Kubectl(t.Context(), "apply", "-f", file)
	must(t, err)
	for _, n := range cluster.Nodes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "chain-" + n.Name, Labels: map[string]string{"app": "chain"}},
			Spec:       corev1.PodSpec{NodeName: n.Name, Containers: []corev1.Container{{Name: "echo", Image: "registry.invalid/echo"}}},
		}
		_, err := pods().Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
		setReady(t, n, true)
	}
	var service *corev1.Service
	eventually(t, 5*time.Second, "the ServiceGrid has its Service", func(ctx context.Context) (err error) {
		service, err = cluster.Cloud.Kubernetes.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "chain-svc", metav1.GetOptions{})
		return err
	})
	expectReached(t, 5*time.Second, service, "node0", "node1 node2", "node1 node2")
	setReady(t, cluster.Nodes[1], false)
	expectReached(t, propagation, service, "node0", "node2", "node2")
	moveToUnit(t, "node2", unit1)
	expectReached(t, propagation, service, "node0 node2", "", "node0 node2")
	must(t, pods().Delete(t.Context(), "chain-node0", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	expectReached(t, propagation, service, "node2", "", "node2")
	_, err = cluster.Kubectl(t.Context(), "delete", "-f", file)
	must(t, err)
	eventually(t, 5*time.Second, "the Service goes with its ServiceGrid", func(ctx context.Context) error {
		_, err := cluster.Cloud.Kubernetes.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "chain-svc", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("not gone: %w", err)
		}
		return nil
	})
}

func pods() typedcorev1.PodInterface {
	return cluster.Cloud.Kubernetes.CoreV1().Pods(metav1.NamespaceDefault)
}

// setReady writes the status of the pod on a node, as its kubelet would; the pod's address is the node's.
func setReady(t *testing.T, n *lab.Node, ready bool) {
	t.Helper()
	condition := corev1.ConditionFalse
	if ready {
		condition = corev1.ConditionTrue
	}
	pod, err := pods().Get(t.Context(), "chain-"+n.Name, metav1.GetOptions{})
	must(t, err)
	address := n.Address.String()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: condition}},
	}
	_, err = pods().UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
}
