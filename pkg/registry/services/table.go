// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// NewTable returns the convertor behind "kubectl get services".
func NewTable(clk clock.PassiveClock) rest.TableConvertor {
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Type", Type: "string", Description: spec["type"]},
		{Name: "Cluster-IP", Type: "string", Description: spec["clusterIP"]},
		{Name: "External-IP", Type: "string", Description: spec["externalIPs"]},
		{Name: "Port(s)", Type: "string", Description: spec["ports"]},
		table.AgeColumn(),
		{Name: "Selector", Type: "string", Priority: 1, Description: spec["selector"]},
	}, cells)
}

func cells(service *corev1.Service, now time.Time) []any {
	clusterIP := table.None
	if len(service.Spec.ClusterIPs) > 0 {
		clusterIP = service.Spec.ClusterIPs[0]
	}
	return []any{
		service.Name,
		string(service.Spec.Type),
		clusterIP,
		externalIP(service),
		ports(service.Spec.Ports),
		table.Age(service.CreationTimestamp, now),
		labels.FormatLabels(service.Spec.Selector),
	}
}

// externalIP is where the Service can be reached from outside the cluster. A
// load balancer that has no address yet is pending, unless other external IPs
// were given by hand.
func externalIP(service *corev1.Service) string {
	switch service.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return joinOr(service.Spec.ExternalIPs, table.None)
	case corev1.ServiceTypeLoadBalancer:
		addresses := ingressAddresses(service.Status.LoadBalancer.Ingress)
		return joinOr(append(addresses, service.Spec.ExternalIPs...), "<pending>")
	case corev1.ServiceTypeExternalName:
		return service.Spec.ExternalName
	default:
		return table.Unknown
	}
}

// ingressAddresses returns each address once, sorted; the IP where an ingress
// has both an IP and a name.
func ingressAddresses(ingress []corev1.LoadBalancerIngress) []string {
	var addresses []string
	for i := range ingress {
		if address := cmp.Or(ingress[i].IP, ingress[i].Hostname); address != "" {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// ports renders "80/TCP,443:30443/TCP": port, node port if there is one, protocol.
func ports(servicePorts []corev1.ServicePort) string {
	texts := make([]string, 0, len(servicePorts))
	for i := range servicePorts {
		port := &servicePorts[i]
		if port.NodePort > 0 {
			texts = append(texts, fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol))
			continue
		}
		texts = append(texts, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
	}
	return joinOr(texts, table.None)
}

func joinOr(values []string, empty string) string {
	if len(values) == 0 {
		return empty
	}
	return strings.Join(values, ",")
}
