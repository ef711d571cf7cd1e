// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod stores Pods of core/v1 for the standalone server, and validates
// pods and the pod templates of workloads.
//
// Nothing runs the pods: there is no scheduler and no kubelet. Who tests with
// them writes their status, and gives them a node when they are created. A pod
// with a node is deleted gracefully, which means that it stays, marked, until
// somebody deletes it with a grace period of 0, as the kubelet would.
package pod

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// nodeNameField is indexed: each kubelet and each agent of a node watches by it.
const nodeNameField = "spec.nodeName"

// NewStorage returns the storage of "pods" and "pods/status".
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.Pod]{
		Version:      corev1.SchemeGroupVersion,
		Kind:         "Pod",
		Resource:     "pods",
		Singular:     "pod",
		ShortNames:   []string{"po"},
		Categories:   []string{"all"},
		Namespaced:   true,
		New:          func() *corev1.Pod { return &corev1.Pod{} },
		NewList:      func() runtime.Object { return &corev1.PodList{} },
		Table:        NewTable(clock.RealClock{}),
		Attrs:        GetAttrs,
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*corev1.Pod]{
			Reset:            resource.StatusField(),
			PrepareForCreate: prepareForCreate,
			PrepareForUpdate: prepareForUpdate,
			Validate:         validateCreate,
			ValidateUpdate:   validateUpdate,
			Warnings:         warnings,
		},
		Status: &resource.Rules[*corev1.Pod]{
			Reset: resource.Fields([]string{"spec"}, []string{"metadata", "deletionTimestamp"},
				[]string{"metadata", "ownerReferences"}),
			PrepareForUpdate: prepareForStatusUpdate,
			ValidateUpdate:   validateStatusUpdate,
		},
		Graceful: gracePeriod,
		Adjust: func(store *genericregistry.Store, options *generic.StoreOptions) {
			store.ReturnDeletedObject = true
			store.PredicateFunc = func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
				return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs, IndexFields: []string{nodeNameField}}
			}
			options.TriggerFunc = storage.IndexerFuncs{nodeNameField: func(obj runtime.Object) string {
				return obj.(*corev1.Pod).Spec.NodeName
			}}
			options.Indexers = &cache.Indexers{storage.FieldIndex(nodeNameField): func(obj any) ([]string, error) {
				pod, ok := obj.(*corev1.Pod)
				if !ok {
					return nil, fmt.Errorf("not a Pod: %T", obj)
				}
				return []string{pod.Spec.NodeName}, nil
			}}
		},
	})
}

// GetAttrs returns the labels and the selectable fields of a Pod.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("not a Pod: %T", obj)
	}
	var podIP string
	if len(pod.Status.PodIPs) > 0 {
		podIP = pod.Status.PodIPs[0].IP
	}
	return pod.Labels, fields.Set{
		"metadata.name":            pod.Name,
		"metadata.namespace":       pod.Namespace,
		nodeNameField:              pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             podIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}, nil
}
