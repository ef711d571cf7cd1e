// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podmatch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// labelIndex is an index of pods by each of their labels. Without it, each sync
// of a Service would look at all pods of the namespace.
const labelIndex = "endpoints.podLabel"

// Pods returns the pods in the informer's cache that a Service selects.
type Pods struct {
	cache cache.Indexer
}

// NewPods adds the index to the informer, unless it is there already. It is not
// to be called concurrently for one informer.
func NewPods(informer cache.SharedIndexInformer) (*Pods, error) {
	indexer := informer.GetIndexer()
	if _, exists := indexer.GetIndexers()[labelIndex]; !exists {
		if err := informer.AddIndexers(cache.Indexers{labelIndex: indexedLabels}); err != nil {
			return nil, fmt.Errorf("index pods by label: %w", err)
		}
	}
	return &Pods{cache: indexer}, nil
}

func indexedLabels(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	values := make([]string, 0, len(pod.Labels))
	for name, value := range pod.Labels {
		values = append(values, indexValue(pod.Namespace, name, value))
	}
	return values, nil
}

func indexValue(namespace, name, value string) string {
	return namespace + "/" + name + "=" + value
}

// Of returns the pods that the Service's selector matches, in no order. They
// are the cache's own: not to be written to.
func (p *Pods) Of(service *corev1.Service) ([]*corev1.Pod, error) {
	selector := labels.Set(service.Spec.Selector).AsSelectorPreValidated()
	var pods []*corev1.Pod
	if len(service.Spec.Selector) == 0 {
		err := cache.ListAllByNamespace(p.cache, service.Namespace, selector, func(object any) {
			pods = append(pods, object.(*corev1.Pod))
		})
		if err != nil {
			return nil, fmt.Errorf("list pods of namespace %s from the cache: %w", service.Namespace, err)
		}
		return pods, nil
	}
	candidates, err := p.candidates(service)
	if err != nil {
		return nil, err
	}
	for _, object := range candidates {
		if pod, ok := object.(*corev1.Pod); ok && selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// candidates returns the pods with the rarest label of the selector.
func (p *Pods) candidates(service *corev1.Service) ([]any, error) {
	var rarest string
	fewest := -1
	for name, value := range service.Spec.Selector {
		indexed := indexValue(service.Namespace, name, value)
		if len(service.Spec.Selector) > 1 {
			keys, err := p.cache.IndexKeys(labelIndex, indexed)
			if err != nil {
				return nil, fmt.Errorf("count pods with the label %s: %w", indexed, err)
			}
			if fewest >= 0 && len(keys) >= fewest {
				continue
			}
			fewest = len(keys)
		}
		rarest = indexed
	}
	objects, err := p.cache.ByIndex(labelIndex, rarest)
	if err != nil {
		return nil, fmt.Errorf("list pods with the label %s: %w", rarest, err)
	}
	return objects, nil
}
