// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// onNodeAdd also tries again the Services with a pod whose node was unknown.
func (c *Controller) onNodeAdd(any) {
	c.zonesChanged()
	for _, key := range c.failures.keys() {
		c.queue.Add(key)
	}
}

func (c *Controller) onNodeUpdate(old, current any) {
	previous, ok := old.(*corev1.Node)
	if !ok {
		return
	}
	node, ok := current.(*corev1.Node)
	if !ok {
		return
	}
	if previous.Labels[corev1.LabelTopologyZone] != node.Labels[corev1.LabelTopologyZone] || isReady(previous) != isReady(node) {
		c.zonesChanged()
	}
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// zonesChanged has noteZones called once for all changes until then.
func (c *Controller) zonesChanged() {
	select {
	case c.zones <- struct{}{}:
	default:
	}
}

// followZones notes changes of nodes until ctx ends.
func (c *Controller) followZones(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.zones:
			c.noteZones(klog.FromContext(ctx))
		}
	}
}

// noteZones tells the cache of topology hints how the capacity of the nodes is
// spread over zones, and syncs the Services whose hints do not fit any more.
func (c *Controller) noteZones(logger klog.Logger) {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Cannot list nodes, topology hints may be out of date")
		return
	}
	c.topology.SetNodes(quiet(logger), nodes)
	for _, key := range c.topology.GetOverloadedServices() {
		c.queue.Add(key)
	}
}
