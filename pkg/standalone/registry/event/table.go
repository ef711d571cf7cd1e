// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get events".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	doc := corev1.Event{}.SwaggerDoc()
	name := table.NameColumn()
	name.Priority = 1
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		{Name: "Last Seen", Type: "string", Description: doc["lastTimestamp"]},
		{Name: "Type", Type: "string", Description: doc["type"]},
		{Name: "Reason", Type: "string", Description: doc["reason"]},
		{Name: "Object", Type: "string", Description: doc["involvedObject"]},
		{Name: "Subobject", Type: "string", Priority: 1, Description: corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]},
		{Name: "Source", Type: "string", Priority: 1, Description: doc["source"]},
		{Name: "Message", Type: "string", Description: doc["message"]},
		{Name: "First Seen", Type: "string", Priority: 1, Description: doc["firstTimestamp"]},
		{Name: "Count", Type: "string", Priority: 1, Description: doc["count"]},
		name,
	}, cells)
}

func cells(event *corev1.Event, now time.Time) []any {
	first, last, count := event.FirstTimestamp, event.LastTimestamp, event.Count
	if first.IsZero() {
		first = metav1.NewTime(event.EventTime.Time)
	}
	if last.IsZero() {
		last = first
	}
	switch {
	case event.Series != nil:
		last, count = metav1.NewTime(event.Series.LastObservedTime.Time), event.Series.Count
	case count == 0: // an Event of events.k8s.io that happened once
		count = 1
	}
	object := strings.ToLower(event.InvolvedObject.Kind)
	if event.InvolvedObject.Name != "" {
		object += "/" + event.InvolvedObject.Name
	}
	return []any{
		table.Age(last, now),
		event.Type,
		event.Reason,
		object,
		event.InvolvedObject.FieldPath,
		source(event),
		strings.TrimSpace(event.Message),
		table.Age(first, now),
		int64(count),
		event.Name,
	}
}

func source(event *corev1.Event) string {
	component := cmp.Or(event.Source.Component, event.ReportingController)
	instance := cmp.Or(event.Source.Host, event.ReportingInstance)
	if instance == "" {
		return component
	}
	return component + ", " + instance
}
