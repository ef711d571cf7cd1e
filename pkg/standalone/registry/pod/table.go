// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get pods".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return completedRows{table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Ready", Type: "string", Description: "How many of the containers are ready."},
		{Name: "Status", Type: "string", Description: "What the pod is doing, as its containers tell."},
		{Name: "Restarts", Type: "string", Description: "How often the containers were restarted, and when the last time was."},
		table.AgeColumn(),
		{Name: "IP", Type: "string", Priority: 1, Description: status["podIP"]},
		{Name: "Node", Type: "string", Priority: 1, Description: spec["nodeName"]},
		{Name: "Nominated Node", Type: "string", Priority: 1, Description: status["nominatedNodeName"]},
		{Name: "Readiness Gates", Type: "string", Priority: 1, Description: spec["readinessGates"]},
	}, cells)}
}

// completedRows marks the rows of pods that have ended.
type completedRows struct{ rest.TableConvertor }

func (c completedRows) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	result, err := c.TableConvertor.ConvertToTable(ctx, obj, options)
	if err != nil {
		return nil, err
	}
	for i := range result.Rows {
		pod := result.Rows[i].Object.Object.(*corev1.Pod)
		var message string
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			message = "The pod has completed successfully."
		case corev1.PodFailed:
			message = "The pod failed."
		default:
			continue
		}
		result.Rows[i].Conditions = []metav1.TableRowCondition{{
			Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(pod.Status.Phase), Message: message,
		}}
	}
	return result, nil
}

func cells(pod *corev1.Pod, now time.Time) []any {
	s := summarize(pod)
	var podIP string
	if len(pod.Status.PodIPs) > 0 {
		podIP = pod.Status.PodIPs[0].IP
	}
	return []any{
		pod.Name,
		fmt.Sprintf("%d/%d", s.ready, s.containers),
		s.reason,
		s.restartsText(now),
		table.Age(pod.CreationTimestamp, now),
		cmp.Or(podIP, table.None),
		cmp.Or(pod.Spec.NodeName, table.None),
		cmp.Or(pod.Status.NominatedNodeName, table.None),
		readinessGates(pod),
	}
}

func readinessGates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return table.None
	}
	var open int
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionIsTrue(&pod.Status, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

func conditionIsTrue(status *corev1.PodStatus, conditionType corev1.PodConditionType) bool {
	for i := range status.Conditions {
		if status.Conditions[i].Type == conditionType {
			return status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}
