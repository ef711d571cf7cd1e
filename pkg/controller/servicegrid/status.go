// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// An Event must not have a longer message.
const maxMessage = 1024

// notKeptError is the failure of a write that succeeded, but after which the Service is still not as it should be: an
// admission webhook, or an API server of another version, has set fields back.
type notKeptError struct{ fields []string }

func (e *notKeptError) Error() string {
	return "the API server or an admission webhook set back what was written: " + strings.Join(e.fields, ", ")
}

// expected reports whether err is what lagging informers and other writers bring about: it goes away with another try,
// and is not worth telling anybody.
func expected(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// verdictOf returns what the user is told about an error.
func verdictOf(err error) verdict {
	reason := superedgev1.ReasonFailed
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		reason = superedgev1.ReasonServiceInvalid
	}
	message := err.Error()
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return verdict{reason, message}
}

// nextStatus returns the status that the outcome of a sync gives grid. Apart from the time, it depends on nothing else.
func nextStatus(grid *superedgev1.ServiceGrid, p plan, now time.Time) superedgev1.ServiceGridStatus {
	status := *grid.Status.DeepCopy()
	status.ObservedGeneration = grid.Generation
	status.ServiceName, status.ClusterIP = "", ""
	if p.service != nil {
		status.ServiceName, status.ClusterIP = p.service.Name, p.service.Spec.ClusterIP
	}
	ready := metav1.Condition{
		Type:               superedgev1.ConditionReady,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: grid.Generation,
		LastTransitionTime: metav1.NewTime(now),
		Reason:             superedgev1.ReasonServiceReady,
		Message:            "The Service is as the ServiceGrid wants it",
	}
	if p.blocked != (verdict{}) {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, p.blocked.reason, p.blocked.message
	}
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

// report writes the status if it changes. Then, and only then, is there an Event of what is wrong: so there is one per
// change, none per resync, and none twice though the informer lags, because then the write is a conflict.
func (c *Controller) report(ctx context.Context, grid *superedgev1.ServiceGrid, p plan) error {
	status := nextStatus(grid, p, c.clock.Now())
	if equality.Semantic.DeepEqual(grid.Status, status) {
		return nil
	}
	updated := grid.DeepCopy()
	updated.Status = status
	_, err := c.gridClient.ServiceGrids(grid.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	before := meta.FindStatusCondition(grid.Status.Conditions, superedgev1.ConditionReady)
	after := meta.FindStatusCondition(status.Conditions, superedgev1.ConditionReady)
	if after.Status == metav1.ConditionFalse && (before == nil || !sameVerdict(*before, *after)) {
		c.recorder.Event(grid, corev1.EventTypeWarning, after.Reason, after.Message)
	}
	return nil
}

// sameVerdict reports whether two conditions tell the user the same about the same generation.
func sameVerdict(a, b metav1.Condition) bool {
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return a == b
}
