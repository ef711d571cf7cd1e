// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// addEventConversions joins the Event of events.k8s.io/v1 to its hub, the Event
// of core/v1. Nothing is lost in either direction: the fields differ in name
// only.
func addEventConversions(s *runtime.Scheme) error {
	err := s.AddConversionFunc((*eventsv1.Event)(nil), (*corev1.Event)(nil), func(in, out any, _ conversion.Scope) error {
		eventToCore(in.(*eventsv1.Event), out.(*corev1.Event))
		return nil
	})
	if err != nil {
		return fmt.Errorf("registering the conversion of events: %w", err)
	}
	err = s.AddConversionFunc((*corev1.Event)(nil), (*eventsv1.Event)(nil), func(in, out any, _ conversion.Scope) error {
		eventFromCore(in.(*corev1.Event), out.(*eventsv1.Event))
		return nil
	})
	if err != nil {
		return fmt.Errorf("registering the conversion of events: %w", err)
	}
	err = s.AddConversionFunc((*eventsv1.EventList)(nil), (*corev1.EventList)(nil), func(in, out any, _ conversion.Scope) error {
		from, to := in.(*eventsv1.EventList), out.(*corev1.EventList)
		to.ListMeta = from.ListMeta
		to.Items = make([]corev1.Event, len(from.Items))
		for i := range from.Items {
			eventToCore(&from.Items[i], &to.Items[i])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("registering the conversion of event lists: %w", err)
	}
	err = s.AddConversionFunc((*corev1.EventList)(nil), (*eventsv1.EventList)(nil), func(in, out any, _ conversion.Scope) error {
		from, to := in.(*corev1.EventList), out.(*eventsv1.EventList)
		to.ListMeta = from.ListMeta
		to.Items = make([]eventsv1.Event, len(from.Items))
		for i := range from.Items {
			eventFromCore(&from.Items[i], &to.Items[i])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("registering the conversion of event lists: %w", err)
	}
	return nil
}

// eventToCore shares what it can with in, like every conversion of a scheme.
func eventToCore(in *eventsv1.Event, out *corev1.Event) {
	out.ObjectMeta = in.ObjectMeta
	out.InvolvedObject = in.Regarding
	out.Related = in.Related
	out.Reason = in.Reason
	out.Message = in.Note
	out.Type = in.Type
	out.Action = in.Action
	out.EventTime = in.EventTime
	out.ReportingController = in.ReportingController
	out.ReportingInstance = in.ReportingInstance
	out.Source = in.DeprecatedSource
	out.FirstTimestamp = in.DeprecatedFirstTimestamp
	out.LastTimestamp = in.DeprecatedLastTimestamp
	out.Count = in.DeprecatedCount
	out.Series = nil
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

func eventFromCore(in *corev1.Event, out *eventsv1.Event) {
	out.ObjectMeta = in.ObjectMeta
	out.Regarding = in.InvolvedObject
	out.Related = in.Related
	out.Reason = in.Reason
	out.Note = in.Message
	out.Type = in.Type
	out.Action = in.Action
	out.EventTime = in.EventTime
	out.ReportingController = in.ReportingController
	out.ReportingInstance = in.ReportingInstance
	out.DeprecatedSource = in.Source
	out.DeprecatedFirstTimestamp = in.FirstTimestamp
	out.DeprecatedLastTimestamp = in.LastTimestamp
	out.DeprecatedCount = in.Count
	out.Series = nil
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}
