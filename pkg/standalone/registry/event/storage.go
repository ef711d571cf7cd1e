// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event stores Events for the standalone server. The groups core and
// events.k8s.io serve the same objects, in the form of the group that was
// asked for; what is stored is the Event of core/v1.
package event

import (
	"cmp"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// NewStorage returns the storage of "events", which is to be served in both
// groups. An Event goes when it has not been written for ttl, which is counted
// in seconds and must be positive.
func NewStorage(getter generic.RESTOptionsGetter, ttl time.Duration) (map[string]rest.Storage, error) {
	seconds := uint64(math.Ceil(ttl.Seconds()))
	if ttl <= 0 {
		return nil, fmt.Errorf("storage of events: the time to live is %v, it must be positive", ttl)
	}
	return resource.NewStorage(getter, resource.Kind[*corev1.Event]{
		Version:           corev1.SchemeGroupVersion,
		Kind:              "Event",
		Resource:          "events",
		Singular:          "event",
		ShortNames:        []string{"ev"},
		Namespaced:        true,
		New:               func() *corev1.Event { return &corev1.Event{} },
		NewList:           func() runtime.Object { return &corev1.EventList{} },
		Table:             NewTable(clock.RealClock{}),
		Attrs:             GetAttrs,
		CreateOnUpdate:    true,
		GarbageCollection: rest.Unsupported,
		Rules:             resource.Rules[*corev1.Event]{Validate: validate, ValidateUpdate: validateUpdate},
		Adjust: func(store *genericregistry.Store, _ *generic.StoreOptions) {
			store.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return seconds, nil }
		},
	})
}

// GetAttrs returns the labels and the selectable fields of an Event, in the
// names of core/v1.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return nil, nil, fmt.Errorf("not an Event: %T", obj)
	}
	about := &event.InvolvedObject
	return event.Labels, fields.Set{
		"metadata.name":                  event.Name,
		"metadata.namespace":             event.Namespace,
		"involvedObject.kind":            about.Kind,
		"involvedObject.namespace":       about.Namespace,
		"involvedObject.name":            about.Name,
		"involvedObject.uid":             string(about.UID),
		"involvedObject.apiVersion":      about.APIVersion,
		"involvedObject.resourceVersion": about.ResourceVersion,
		"involvedObject.fieldPath":       about.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         cmp.Or(event.Source.Component, event.ReportingController),
		"type":                           event.Type,
	}, nil
}
