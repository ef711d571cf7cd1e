// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	unit1 = "nodeunit1"
	unit2 = "nodeunit2"
	all   = "node0 node1 node2"
)

func TestServiceIsClosedOverItsNodeUnit(t *testing.T) {
	for _, mode := range []lab.ProxyMode{lab.NFTables, lab.IPTables} {
		t.Run(string(mode), func(t *testing.T) {
			service := createService(t, lab.Service(lab.DemoService, closed()))
			t.Run("kube-proxy on kube-apiserver reaches every endpoint", func(t *testing.T) {
				setUp(t, lab.ViaUpstream, mode, unit1, unit2, unit2)
				expectReached(t, 5*time.Second, service, all, all, all)
			})
			t.Run("kube-proxy on grid-apiserver reaches its own unit only", func(t *testing.T) {
				setUp(t, lab.ViaGrid, mode, unit1, unit2, unit2)
				expectReached(t, 5*time.Second, service, "node0", "node1 node2", "node1 node2")
			})
		})
	}
}

func TestChangesReachKubeProxyWithoutARestart(t *testing.T) {
	service := createService(t, lab.Service(lab.DemoService, closed()))
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	expectReached(t, 5*time.Second, service, "node0", "node1 node2", "node1 node2")
	before := programIDs()
	steps := []struct {
		name   string
		change func(t *testing.T)
		want   [3]string
	}{
		{
			"node2 moves to the unit of node0",
			func(t *testing.T) { moveToUnit(t, "node2", unit1) },
			[3]string{"node0 node2", "node1", "node0 node2"},
		},
		{
			"the annotation is removed",
			func(t *testing.T) { annotate(t, service.Name, "null") },
			[3]string{all, all, all},
		},
		{
			"the annotation is added again",
			func(t *testing.T) { annotate(t, service.Name, `"[\"zone1\"]"`) },
			[3]string{"node0 node2", "node1", "node0 node2"},
		},
		{
			"an endpoint is added",
			func(t *testing.T) {
				extra := lab.Endpoint{Address: cluster.Nodes[1].Spare, Node: "node1"}
				setEndpoints(t, service.Name, append(cluster.EchoEndpoints(), extra)...)
			},
			[3]string{"node0 node2", "node1 node1+", "node0 node2"},
		},
		{
			"the added endpoint and that of node0 are deleted",
			func(t *testing.T) { setEndpoints(t, service.Name, cluster.EchoEndpoints()[1:]...) },
			[3]string{"node2", "node1", "node2"},
		},
		{
			"the endpoint of node0 is back",
			func(t *testing.T) { setEndpoints(t, service.Name, cluster.EchoEndpoints()...) },
			[3]string{"node0 node2", "node1", "node0 node2"},
		},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.change(t)
			expectReached(t, propagation, service, step.want[:]...)
		})
	}
	if after := programIDs(); after != before {
		t.Errorf("programs were restarted: process ids before %v, after %v", before, after)
	}

	t.Run("the Node object of node2 is deleted", func(t *testing.T) {
		deleteNode(t, "node2")
		expectReached(t, propagation, service, "node0", "node1")
		select {
		case <-cluster.Nodes[2].Proxy.Done(): // as with kube-apiserver, so it has seen the deletion
		case <-time.After(10 * time.Second):
			t.Error("the kube-proxy of node2 goes on although its Node object is gone")
		}
	})
	t.Run("the Node object of node2 is back", func(t *testing.T) {
		setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit1)
		expectReached(t, propagation, service, "node0 node2", "node1", "node0 node2")
	})
}

func programIDs() (ids [2 * lab.NodeCount]int) {
	for i, n := range cluster.Nodes {
		ids[2*i], ids[2*i+1] = n.Grid.PID(), n.Proxy.PID()
	}
	return ids
}
