// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

// TestEndpointsAreAFunctionOfServicesAndPods plays random changes of both, lag,
// failures, other writers and restarts.
func TestEndpointsAreAFunctionOfServicesAndPods(t *testing.T) {
	kube.Play(t, func(r *kube.Random) { r.OnEndpoints = true }, start, func(cluster *kube.Cluster) error {
		all := kube.All[*corev1.Endpoints](cluster, "endpoints")
		services := kube.All[*corev1.Service](cluster, "services")
		for key, service := range services {
			if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
				continue // whatever was there
			}
			endpoints := all[key]
			if endpoints == nil {
				return fmt.Errorf("service %s has no Endpoints", key)
			}
			if diff := cmp.Diff(model(service, kube.All[*corev1.Pod](cluster, "pods")), flat(endpoints.Subsets)); diff != "" {
				return fmt.Errorf("endpoints %s (-want +got):\n%s", key, diff)
			}
			labels := map[string]string{LabelManagedBy: ManagedBy}
			maps.Copy(labels, service.Labels)
			delete(endpoints.Labels, corev1.IsHeadlessService) // as it was when they were last written
			if diff := cmp.Diff(labels, endpoints.Labels); diff != "" {
				return fmt.Errorf("labels of endpoints %s (-want +got):\n%s", key, diff)
			}
		}
		for key := range all {
			if services[key] == nil {
				return fmt.Errorf("endpoints %s have no service", key)
			}
		}
		return nil
	})
}

// flat lists an entry for each address and port.
func flat(subsets []corev1.EndpointSubset) []string {
	entries := []string{}
	for _, subset := range subsets {
		ports := subset.Ports
		if len(ports) == 0 {
			ports = []corev1.EndpointPort{{}}
		}
		for _, port := range ports {
			for _, address := range subset.Addresses {
				entries = append(entries, entry(port.Name, port.Port, address.IP, true, string(address.TargetRef.UID), address.NodeName, address.Hostname))
			}
			for _, address := range subset.NotReadyAddresses {
				entries = append(entries, entry(port.Name, port.Port, address.IP, false, string(address.TargetRef.UID), address.NodeName, address.Hostname))
			}
		}
	}
	slices.Sort(entries)
	return entries
}

func entry(port string, number int32, ip string, ready bool, uid string, node *string, hostname string) string {
	on := ""
	if node != nil {
		on = *node
	}
	return fmt.Sprintf("%s:%d %s ready=%t uid=%s node=%s hostname=%s", port, number, ip, ready, uid, on, hostname)
}

// model says it the slow way.
func model(service *corev1.Service, pods map[string]*corev1.Pod) []string {
	entries := []string{}
	for _, pod := range pods {
		selected := true
		for name, value := range service.Spec.Selector {
			selected = selected && pod.Labels[name] == value
		}
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if !selected || ended || pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses {
			continue
		}
		wantColon := service.Spec.IPFamilies[0] == corev1.IPv6Protocol
		i := slices.IndexFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return strings.Contains(ip.IP, ":") == wantColon })
		if i < 0 {
			continue
		}
		ready := service.Spec.PublishNotReadyAddresses || pod.Status.Conditions[0].Status == corev1.ConditionTrue
		hostname := ""
		if pod.Spec.Subdomain == service.Name {
			hostname = pod.Spec.Hostname
		}
		add := func(port string, number int32) {
			entries = append(entries, entry(port, number, pod.Status.PodIPs[i].IP, ready, string(pod.UID), &pod.Spec.NodeName, hostname))
		}
		if len(service.Spec.Ports) == 0 {
			add("", 0)
		}
		for _, port := range service.Spec.Ports {
			switch {
			case port.TargetPort.Type == intstr.Int:
				add(port.Name, port.TargetPort.IntVal)
			case len(pod.Spec.Containers[0].Ports) > 0:
				add(port.Name, pod.Spec.Containers[0].Ports[0].ContainerPort)
			}
		}
	}
	slices.Sort(entries)
	return entries
}
