// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// followOwnNode keeps the mirror of the own Node and its labels.
func (f *Feed) followOwnNode(ctx context.Context) {
	mirror := mirrored[*corev1.Node](f.cfg.Nodes)
	follow(ctx, f.sources[Nodes], f.cfg.Client.CoreV1().Nodes(), fieldName(f.cfg.NodeName), &corev1.Node{}, receiver[*corev1.Node]{
		set: func(node *corev1.Node) {
			mirror.set(node)
			f.seenOwnNode(ctx, node)
		},
		// The labels of a deleted own Node go on to hold.
		remove: mirror.remove,
		replace: func(all []*corev1.Node, resourceVersion string) {
			mirror.replace(all, resourceVersion)
			if len(all) > 0 {
				f.seenOwnNode(ctx, all[0])
				return
			}
			f.recallOwnNode(ctx)
		},
		progress: mirror.progress,
	})
}

func (f *Feed) seenOwnNode(ctx context.Context, node *corev1.Node) {
	f.cfg.View.SetOwnLabels(node.Labels)
	if f.labels != nil && maps.Equal(f.labels, node.Labels) {
		return
	}
	labels := maps.Clone(node.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if err := f.cfg.Memory.SetNodeLabels(f.cfg.NodeName, labels); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot record the labels of the own Node, trying again at its next change")
		return
	}
	f.labels = labels
}

// recallOwnNode goes on with the labels of an earlier process if upstream does
// not have the own Node.
func (f *Feed) recallOwnNode(ctx context.Context) {
	if f.cfg.View.Synced().OwnNode {
		return
	}
	logger := klog.FromContext(ctx)
	labels, found, err := f.cfg.Memory.NodeLabels(f.cfg.NodeName)
	switch {
	case err != nil:
		logger.Error(err, "Cannot read the last labels of the own Node")
	case !found:
		logger.Info("Upstream does not have the own Node, waiting for it", "node", f.cfg.NodeName)
	default:
		logger.Info("Upstream does not have the own Node, going on with its last labels", "node", f.cfg.NodeName)
		f.cfg.View.SetOwnLabels(labels)
	}
}
