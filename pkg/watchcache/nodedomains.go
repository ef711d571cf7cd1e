// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
)

// NodeDomains follows domains by watches of Nodes that upstream limits to those
// that carry the label, as metadata only: with N nodes that each watched all N,
// every change of a Node would be sent N times. It is safe for concurrent use.
type NodeDomains struct {
	ctx    context.Context
	client metadata.Interface
	source *source
	wg     sync.WaitGroup
}

var _ DomainWatcher = (*NodeDomains)(nil)

// NewNodeDomains returns a watcher whose watches end when ctx does.
func NewNodeDomains(ctx context.Context, client metadata.Interface) *NodeDomains {
	return &NodeDomains{ctx: ctx, client: client, source: &source{resource: "node domains"}}
}

// Watch implements DomainWatcher.
func (d *NodeDomains) Watch(key, value string, sink DomainSink) func() {
	ctx, cancel := context.WithCancel(d.ctx)
	d.wg.Go(func() {
		follow(ctx, d.source, d.client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")),
			metav1.ListOptions{LabelSelector: labels.Set{key: value}.String()}, &metav1.PartialObjectMetadata{},
			receiver[*metav1.PartialObjectMetadata]{
				set:    func(m *metav1.PartialObjectMetadata) { sink.Add(m.Name) },
				remove: func(m *metav1.PartialObjectMetadata) { sink.Delete(m.Name) },
				replace: func(all []*metav1.PartialObjectMetadata, _ string) {
					names := make([]string, 0, len(all))
					for _, m := range all {
						names = append(names, m.Name)
					}
					sink.Replace(names)
				},
			})
	})
	return cancel
}

// Err returns the error of the last attempt to list or watch a domain.
func (d *NodeDomains) Err() error { return d.source.Err() }

// Wait returns when all watches have ended, after the context has.
func (d *NodeDomains) Wait() { d.wg.Wait() }
