// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewDeploymentTable returns the convertor behind "kubectl get deployments".
func NewDeploymentTable(clk clock.PassiveClock) rest.TableConvertor {
	status := appsv1.DeploymentStatus{}.SwaggerDoc()
	return table.NewConvertor(clk, append([]metav1.TableColumnDefinition{
		table.NameColumn(),
		readyColumn(),
		{Name: "Up-to-date", Type: "string", Description: status["updatedReplicas"]},
		{Name: "Available", Type: "string", Description: status["availableReplicas"]},
		table.AgeColumn(),
	}, append(containerColumns(), selectorColumn(appsv1.DeploymentSpec{}.SwaggerDoc()["selector"]))...),
		func(deployment *appsv1.Deployment, now time.Time) []any {
			selector := "<invalid>"
			if parsed, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector); err == nil {
				selector = parsed.String()
			}
			cells := []any{
				deployment.Name,
				ready(deployment.Status.ReadyReplicas, deployment.Spec.Replicas),
				int64(deployment.Status.UpdatedReplicas),
				int64(deployment.Status.AvailableReplicas),
				table.Age(deployment.CreationTimestamp, now),
			}
			return append(append(cells, containerCells(&deployment.Spec.Template)...), selector)
		})
}

// NewReplicaSetTable returns the convertor behind "kubectl get replicasets".
func NewReplicaSetTable(clk clock.PassiveClock) rest.TableConvertor {
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	return table.NewConvertor(clk, append([]metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Desired", Type: "integer", Description: spec["replicas"]},
		{Name: "Current", Type: "integer", Description: status["replicas"]},
		{Name: "Ready", Type: "integer", Description: status["readyReplicas"]},
		table.AgeColumn(),
	}, append(containerColumns(), selectorColumn(spec["selector"]))...),
		func(replicaSet *appsv1.ReplicaSet, now time.Time) []any {
			cells := []any{
				replicaSet.Name,
				int64(valueOf(replicaSet.Spec.Replicas)),
				int64(replicaSet.Status.Replicas),
				int64(replicaSet.Status.ReadyReplicas),
				table.Age(replicaSet.CreationTimestamp, now),
			}
			return append(append(cells, containerCells(&replicaSet.Spec.Template)...), metav1.FormatLabelSelector(replicaSet.Spec.Selector))
		})
}

// NewDaemonSetTable returns the convertor behind "kubectl get daemonsets".
func NewDaemonSetTable(clk clock.PassiveClock) rest.TableConvertor {
	status := appsv1.DaemonSetStatus{}.SwaggerDoc()
	return table.NewConvertor(clk, append([]metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Desired", Type: "integer", Description: status["desiredNumberScheduled"]},
		{Name: "Current", Type: "integer", Description: status["currentNumberScheduled"]},
		{Name: "Ready", Type: "integer", Description: status["numberReady"]},
		{Name: "Up-to-date", Type: "integer", Description: status["updatedNumberScheduled"]},
		{Name: "Available", Type: "integer", Description: status["numberAvailable"]},
		{Name: "Node Selector", Type: "string", Description: corev1.PodSpec{}.SwaggerDoc()["nodeSelector"]},
		table.AgeColumn(),
	}, append(containerColumns(), selectorColumn(appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"]))...),
		func(daemonSet *appsv1.DaemonSet, now time.Time) []any {
			cells := []any{
				daemonSet.Name,
				int64(daemonSet.Status.DesiredNumberScheduled),
				int64(daemonSet.Status.CurrentNumberScheduled),
				int64(daemonSet.Status.NumberReady),
				int64(daemonSet.Status.UpdatedNumberScheduled),
				int64(daemonSet.Status.NumberAvailable),
				labels.FormatLabels(daemonSet.Spec.Template.Spec.NodeSelector),
				table.Age(daemonSet.CreationTimestamp, now),
			}
			return append(append(cells, containerCells(&daemonSet.Spec.Template)...), metav1.FormatLabelSelector(daemonSet.Spec.Selector))
		})
}

// NewStatefulSetTable returns the convertor behind "kubectl get statefulsets".
func NewStatefulSetTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, append([]metav1.TableColumnDefinition{
		table.NameColumn(), readyColumn(), table.AgeColumn(),
	}, containerColumns()...),
		func(set *appsv1.StatefulSet, now time.Time) []any {
			cells := []any{set.Name, ready(set.Status.ReadyReplicas, set.Spec.Replicas), table.Age(set.CreationTimestamp, now)}
			return append(cells, containerCells(&set.Spec.Template)...)
		})
}

// scaleTable renders Scales, and leaves the rest to another convertor: a
// subresource shares the convertor of its resource.
type scaleTable struct{ resources, scales rest.TableConvertor }

func withScales(clk clock.PassiveClock, resources rest.TableConvertor) rest.TableConvertor {
	return scaleTable{resources: resources, scales: table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Desired", Type: "integer", Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]},
		{Name: "Available", Type: "integer", Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]},
		table.AgeColumn(),
	}, func(scale *autoscalingv1.Scale, now time.Time) []any {
		return []any{scale.Name, scale.Spec.Replicas, scale.Status.Replicas, table.Age(scale.CreationTimestamp, now)}
	})}
}

func (t scaleTable) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	if _, ok := obj.(*autoscalingv1.Scale); ok {
		return t.scales.ConvertToTable(ctx, obj, options)
	}
	return t.resources.ConvertToTable(ctx, obj, options)
}

func readyColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Ready", Type: "string", Description: "How many of the pods are ready."}
}

func containerColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Containers", Type: "string", Priority: 1, Description: "The names of the containers in the template."},
		{Name: "Images", Type: "string", Priority: 1, Description: "The images of the containers in the template."},
	}
}

func selectorColumn(doc string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Selector", Type: "string", Priority: 1, Description: doc}
}

func ready(ready int32, desired *int32) string { return fmt.Sprintf("%d/%d", ready, valueOf(desired)) }

// valueOf is the zero value where there is none.
func valueOf[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}

func containerCells(template *corev1.PodTemplateSpec) []any {
	names, images := make([]string, 0, len(template.Spec.Containers)), make([]string, 0, len(template.Spec.Containers))
	for i := range template.Spec.Containers {
		names = append(names, template.Spec.Containers[i].Name)
		images = append(images, template.Spec.Containers[i].Image)
	}
	return []any{strings.Join(names, ","), strings.Join(images, ",")}
}
