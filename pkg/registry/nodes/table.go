// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// A role is told by a label of either form: the role in the key (any value) or
// in the value.
const (
	rolePrefix = "node-role.kubernetes.io/"
	roleLabel  = "kubernetes.io/role"
)

// NewTable returns the convertor behind "kubectl get nodes".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	status, info := corev1.NodeStatus{}.SwaggerDoc(), corev1.NodeSystemInfo{}.SwaggerDoc()
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Status", Type: "string", Description: "The status of the node"},
		{Name: "Roles", Type: "string", Description: "The roles of the node"},
		table.AgeColumn(),
		{Name: "Version", Type: "string", Description: info["kubeletVersion"]},
		{Name: "Internal-IP", Type: "string", Priority: 1, Description: status["addresses"]},
		{Name: "External-IP", Type: "string", Priority: 1, Description: status["addresses"]},
		{Name: "OS-Image", Type: "string", Priority: 1, Description: info["osImage"]},
		{Name: "Kernel-Version", Type: "string", Priority: 1, Description: info["kernelVersion"]},
		{Name: "Container-Runtime", Type: "string", Priority: 1, Description: info["containerRuntimeVersion"]},
	}, cells)
}

func cells(node *corev1.Node, now time.Time) []any {
	info := &node.Status.NodeInfo
	return []any{
		node.Name,
		condition(node),
		roles(node.Labels),
		table.Age(node.CreationTimestamp, now),
		info.KubeletVersion,
		address(node, corev1.NodeInternalIP),
		address(node, corev1.NodeExternalIP),
		cmp.Or(info.OSImage, table.Unknown),
		kernel(info),
		cmp.Or(info.ContainerRuntimeVersion, table.Unknown),
	}
}

// condition is "Ready", "NotReady" or "Unknown" (the kubelet has not reported
// yet), and whether pods may be scheduled.
func condition(node *corev1.Node) string {
	text := "Unknown"
	for i := range node.Status.Conditions {
		switch c := &node.Status.Conditions[i]; {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			text = "Ready"
		default:
			text = "NotReady"
		}
	}
	if node.Spec.Unschedulable {
		text += ",SchedulingDisabled"
	}
	return text
}

func roles(nodeLabels map[string]string) string {
	var found []string
	for key, value := range nodeLabels {
		role, inKey := strings.CutPrefix(key, rolePrefix)
		switch {
		case inKey && role != "":
			found = append(found, role)
		case key == roleLabel && value != "":
			found = append(found, value)
		}
	}
	if len(found) == 0 {
		return table.None
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ",")
}

// address returns the node's first address of the type.
func address(node *corev1.Node, addressType corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == addressType {
			return a.Address
		}
	}
	return table.None
}

func kernel(info *corev1.NodeSystemInfo) string {
	version := cmp.Or(info.KernelVersion, table.Unknown)
	if info.Architecture == "" {
		return version
	}
	return fmt.Sprintf("%s (%s)", version, info.Architecture)
}
