// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// Limits of the fields of an Event that has an eventTime, in bytes.
const (
	maxReportingInstance = 128
	maxAction            = 128
	maxReason            = 128
	maxNote              = 1024
)

// isCore tells whether the request is for the core group, which has always
// taken Events as they come.
func isCore(ctx context.Context) bool {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	return ok && info.APIGroup == "" && info.APIVersion == "v1"
}

func validate(ctx context.Context, event *corev1.Event) field.ErrorList {
	core := isCore(ctx)
	errs := validateAnyGroup(event, core)
	if core {
		return errs
	}
	errs = append(errs, apivalidation.ValidateObjectMeta(&event.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, resource.FinalizerNames(field.NewPath("metadata"), event.Finalizers)...)
	errs = append(errs, validateSeries(event.Series)...)
	if event.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", event.Type)))
	}
	// What only the core group has.
	unset := func(name string, isSet bool) {
		if isSet {
			errs = append(errs, field.Invalid(field.NewPath(name), "", "needs to be unset"))
		}
	}
	unset("firstTimestamp", !event.FirstTimestamp.IsZero())
	unset("lastTimestamp", !event.LastTimestamp.IsZero())
	unset("count", event.Count != 0)
	unset("source", event.Source != corev1.EventSource{})
	return errs
}

// validateUpdate lets an Event of events.k8s.io change in its series only.
func validateUpdate(ctx context.Context, event, old *corev1.Event) field.ErrorList {
	core := isCore(ctx)
	errs := validateAnyGroup(event, core)
	if core {
		return errs
	}
	errs = append(errs, apivalidation.ValidateObjectMetaUpdate(&event.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))...)
	errs = append(errs, resource.FinalizerNames(field.NewPath("metadata"), event.Finalizers)...)
	if (event.Series == nil) != (old.Series == nil) || event.Series != nil && *event.Series != *old.Series {
		errs = append(errs, validateSeries(event.Series)...)
	}
	immutable := func(name string, value, before any) {
		errs = append(errs, apivalidation.ValidateImmutableField(value, before, field.NewPath(name))...)
	}
	immutable("involvedObject", event.InvolvedObject, old.InvolvedObject)
	immutable("reason", event.Reason, old.Reason)
	immutable("message", event.Message, old.Message)
	immutable("source", event.Source, old.Source)
	immutable("firstTimestamp", event.FirstTimestamp, old.FirstTimestamp)
	immutable("lastTimestamp", event.LastTimestamp, old.LastTimestamp)
	immutable("count", event.Count, old.Count)
	immutable("type", event.Type, old.Type)
	// A client may hold the time more exactly than it was stored.
	if !event.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		immutable("eventTime", event.EventTime, old.EventTime)
	}
	immutable("action", event.Action, old.Action)
	immutable("related", event.Related, old.Related)
	immutable("reportingController", event.ReportingController, old.ReportingController)
	immutable("reportingInstance", event.ReportingInstance, old.ReportingInstance)
	return errs
}

func validateSeries(series *corev1.EventSeries) field.ErrorList {
	var errs field.ErrorList
	if series == nil {
		return nil
	}
	if series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateAnyGroup has the rules that hold in both groups. An eventTime marks
// an Event of the newer form.
func validateAnyGroup(event *corev1.Event, core bool) field.ErrorList {
	var errs field.ErrorList
	about := event.InvolvedObject.Namespace
	mismatch := field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace")
	if event.EventTime.IsZero() {
		matches := event.Namespace == about ||
			about == "" && (event.Namespace == metav1.NamespaceNone || event.Namespace == metav1.NamespaceDefault)
		if !matches {
			errs = append(errs, mismatch)
		}
		return errs
	}
	if about == "" && event.Namespace != metav1.NamespaceDefault && event.Namespace != metav1.NamespaceSystem {
		errs = append(errs, mismatch)
	}
	controller := field.NewPath("reportingController")
	if core {
		controller = field.NewPath("reportingComponent")
	}
	if event.ReportingController == "" {
		errs = append(errs, field.Required(controller, ""))
	}
	errs = append(errs, resource.QualifiedName(controller, event.ReportingController)...)
	for _, text := range []struct {
		name, value string
		limit       int
		required    bool
	}{
		{"reportingInstance", event.ReportingInstance, maxReportingInstance, true},
		{"action", event.Action, maxAction, true},
		{"reason", event.Reason, maxReason, true},
		{"message", event.Message, maxNote, false},
	} {
		if text.required && text.value == "" {
			errs = append(errs, field.Required(field.NewPath(text.name), ""))
		}
		if len(text.value) > text.limit {
			errs = append(errs, field.Invalid(field.NewPath(text.name), "", fmt.Sprintf("can have at most %d characters", text.limit)))
		}
	}
	return errs
}
