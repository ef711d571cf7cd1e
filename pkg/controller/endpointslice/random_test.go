// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

// TestSlicesAreAFunctionOfServicesAndPods plays random changes of both, lag,
// failures, other writers and restarts.
func TestSlicesAreAFunctionOfServicesAndPods(t *testing.T) {
	kube.Play(t, func(r *kube.Random) { r.OnSlices = true }, start, func(cluster *kube.Cluster) error {
		for key, service := range kube.All[*corev1.Service](cluster, "services") {
			if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
				continue // whatever was there
			}
			want := model(service, kube.All[*corev1.Pod](cluster, "pods"), kube.All[*corev1.Node](cluster, "nodes"))
			existing := slicesOf(cluster, service.Name)
			if diff := cmp.Diff(want, flat(existing)); diff != "" {
				return fmt.Errorf("slices of %s (-want +got):\n%s", key, diff)
			}
			labels := map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: ManagedBy}
			maps.Copy(labels, service.Labels)
			for _, slice := range existing {
				if len(slice.Endpoints) > maxPerSlice {
					return fmt.Errorf("slice %s has %d endpoints", slice.Name, len(slice.Endpoints))
				}
				delete(slice.Labels, corev1.IsHeadlessService) // as it was when they were last written
				if diff := cmp.Diff(labels, slice.Labels); diff != "" {
					return fmt.Errorf("labels of slice %s (-want +got):\n%s", slice.Name, diff)
				}
				// The reconciler takes another Service's placeholder for its
				// own if a writer has labelled it so. It says nothing wrong,
				// and goes with its owner.
				placeholder := len(slice.Endpoints) == 0 && len(slice.Ports) == 0
				if owner := slice.OwnerReferences[0]; owner.UID != service.UID && !placeholder {
					return fmt.Errorf("slice %s of service %s (%s) has the owner %s (%s)", slice.Name, key, service.UID, owner.Name, owner.UID)
				}
			}
		}
		return nil
	})
}

// flat lists an entry for each endpoint, and one for a family with none. A slice
// that another writer has emptied stays beside others: the reconciler keeps it
// for later.
func flat(existing []*discoveryv1.EndpointSlice) []string {
	entries := []string{}
	empty := map[discoveryv1.AddressType]bool{}
	for _, slice := range existing {
		if _, seen := empty[slice.AddressType]; !seen {
			empty[slice.AddressType] = true
		}
		var ports []string
		for _, port := range slice.Ports {
			ports = append(ports, fmt.Sprintf("%s:%d", *port.Name, *port.Port))
		}
		for _, e := range slice.Endpoints {
			empty[slice.AddressType] = false
			entries = append(entries, entry(slice.AddressType, ports, e.Addresses[0], *e.Conditions.Ready, *e.Conditions.Serving,
				*e.Conditions.Terminating, string(e.TargetRef.UID), deref(e.NodeName), deref(e.Zone), deref(e.Hostname)))
		}
	}
	for family, none := range empty {
		if none {
			entries = append(entries, fmt.Sprint(family, " placeholder"))
		}
	}
	slices.Sort(entries)
	return entries
}

func entry(family discoveryv1.AddressType, ports []string, ip string, ready, serving, terminating bool, uid, node, zone, hostname string) string {
	return fmt.Sprintf("%s %s %s ready=%t serving=%t terminating=%t uid=%s node=%s zone=%s hostname=%s",
		family, sorted(ports), ip, ready, serving, terminating, uid, node, zone, hostname)
}

func sorted(ports []string) []string {
	return slices.Sorted(slices.Values(ports))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// model says it the slow way.
func model(service *corev1.Service, pods map[string]*corev1.Pod, nodes map[string]*corev1.Node) []string {
	entries := []string{}
	for _, family := range service.Spec.IPFamilies {
		count := len(entries)
		for _, pod := range pods {
			selected := true
			for name, value := range service.Spec.Selector {
				selected = selected && pod.Labels[name] == value
			}
			node := nodes["/"+pod.Spec.NodeName]
			ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
			i := slices.IndexFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool {
				return strings.Contains(ip.IP, ":") == (family == corev1.IPv6Protocol)
			})
			if !selected || ended || i < 0 || node == nil && !service.Spec.PublishNotReadyAddresses {
				continue
			}
			var ports []string
			for _, port := range service.Spec.Ports {
				switch {
				case port.TargetPort.Type == intstr.Int:
					ports = append(ports, fmt.Sprintf("%s:%d", port.Name, port.TargetPort.IntVal))
				case len(pod.Spec.Containers[0].Ports) > 0:
					ports = append(ports, fmt.Sprintf("%s:%d", port.Name, pod.Spec.Containers[0].Ports[0].ContainerPort))
				}
			}
			serving := pod.Status.Conditions[0].Status == corev1.ConditionTrue
			terminating := pod.DeletionTimestamp != nil
			zone, hostname := "", ""
			if node != nil {
				zone = node.Labels[corev1.LabelTopologyZone]
			}
			if pod.Spec.Subdomain == service.Name {
				hostname = pod.Spec.Hostname
			}
			entries = append(entries, entry(discoveryv1.AddressType(family), ports, pod.Status.PodIPs[i].IP,
				service.Spec.PublishNotReadyAddresses || serving && !terminating, serving, terminating,
				string(pod.UID), pod.Spec.NodeName, zone, hostname))
		}
		if len(entries) == count {
			entries = append(entries, fmt.Sprint(family, " placeholder"))
		}
	}
	slices.Sort(entries)
	return entries
}
