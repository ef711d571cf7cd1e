// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/subsets"
)

const (
	// LabelManagedBy is the label of the Endpoints that this controller keeps.
	LabelManagedBy = "endpoints.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy: kube-controller-manager's, so
	// that either can take over from the other without writing.
	ManagedBy = "endpoint-controller"

	truncated = "truncated" // the value of the annotation over-capacity
)

// managed says whether the controller keeps the Endpoints of the Service. All
// others are left as they are, those of a Service that has become one of type
// ExternalName or has lost its selector too.
func managed(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && service.Spec.Selector != nil
}

// Build returns the subsets that the Service should have with these pods, which
// its selector matches, in canonical form, and whether some addresses are left
// out because there are too many. The result shares memory with the arguments.
func Build(service *corev1.Service, pods []*corev1.Pod) (built []corev1.EndpointSubset, overCapacity bool) {
	for _, pod := range pods {
		if !endpointsliceutil.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		address, found := addressOf(service, pod)
		if !found {
			continue
		}
		ready := service.Spec.PublishNotReadyAddresses || endpointsliceutil.IsPodReady(pod)
		if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone {
			built = append(built, subsetOf(address, ready))
		}
		for i := range service.Spec.Ports {
			port := &service.Spec.Ports[i]
			number, err := endpointslice.FindPort(pod, port)
			if err != nil {
				continue // the pod has no port of that name
			}
			built = append(built, subsetOf(address, ready, corev1.EndpointPort{
				Name:        port.Name,
				Port:        int32(number),
				Protocol:    port.Protocol,
				AppProtocol: port.AppProtocol,
			}))
		}
	}
	return subsets.Truncate(subsets.Repack(built))
}

func subsetOf(address corev1.EndpointAddress, ready bool, ports ...corev1.EndpointPort) corev1.EndpointSubset {
	if ready {
		return corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{address}, Ports: ports}
	}
	return corev1.EndpointSubset{NotReadyAddresses: []corev1.EndpointAddress{address}, Ports: ports}
}

// addressOf returns the pod's first address of the Service's primary family.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	wantIPv6 := primaryFamily(service, pod) == corev1.IPv6Protocol
	for _, podIP := range pod.Status.PodIPs {
		// Old addresses may be written in ways that are refused today, so this
		// is a lenient parser.
		ip := utilnet.ParseIPSloppy(podIP.IP)
		if ip == nil || utilnet.IsIPv6(ip) != wantIPv6 {
			continue
		}
		address := corev1.EndpointAddress{
			IP: ip.String(),
			TargetRef: &corev1.ObjectReference{
				Kind:      "Pod",
				Namespace: pod.Namespace,
				Name:      pod.Name,
				UID:       pod.UID,
			},
		}
		if pod.Spec.NodeName != "" {
			address.NodeName = &pod.Spec.NodeName
		}
		if endpointsliceutil.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		return address, true
	}
	return corev1.EndpointAddress{}, false
}

// primaryFamily is the family of a Service's addresses. A Service that an old
// API server has not defaulted has none: then its ClusterIP tells, and without
// one the pod.
func primaryFamily(service *corev1.Service, pod *corev1.Pod) corev1.IPFamily {
	if len(service.Spec.IPFamilies) > 0 {
		return service.Spec.IPFamilies[0]
	}
	ip := pod.Status.PodIP
	if isIPSet(service) {
		ip = service.Spec.ClusterIP
	}
	if utilnet.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func isIPSet(service *corev1.Service) bool {
	return service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone
}

// Plan returns the object to write so that the Endpoints of the Service are
// right with these pods, or nil if current already is. Without a current object
// the result is to be created, otherwise it carries current's resourceVersion.
// The trigger is the time of the change that made this necessary, if known. The
// result shares memory with the arguments, and none of them is written to.
func Plan(current *corev1.Endpoints, service *corev1.Service, pods []*corev1.Pod, trigger time.Time) *corev1.Endpoints {
	built, overCapacity := Build(service, pods)
	labels := labelsFor(service)
	planned := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	if current != nil {
		if subsets.SameContents(current.Subsets, built) &&
			sameLabels(current.Labels, labels) &&
			capacityNoted(current.Annotations, overCapacity) {
			return nil
		}
		planned.ObjectMeta = *current.ObjectMeta.DeepCopy()
	}
	planned.Subsets = built
	planned.Labels = labels
	annotate(planned, corev1.EndpointsOverCapacity, truncated, overCapacity)
	annotate(planned, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())
	return planned
}

func annotate(endpoints *corev1.Endpoints, name, value string, set bool) {
	if !set {
		delete(endpoints.Annotations, name)
		return
	}
	if endpoints.Annotations == nil {
		endpoints.Annotations = map[string]string{}
	}
	endpoints.Annotations[name] = value
}

func capacityNoted(annotations map[string]string, overCapacity bool) bool {
	value, noted := annotations[corev1.EndpointsOverCapacity]
	if overCapacity {
		return value == truncated
	}
	return !noted
}

func labelsFor(service *corev1.Service) map[string]string {
	labels := make(map[string]string, len(service.Labels)+2)
	maps.Copy(labels, service.Labels)
	if isIPSet(service) {
		delete(labels, corev1.IsHeadlessService)
	} else {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// sameLabels compares labels but the headless one, which alone is no reason to
// write, neither for kube-controller-manager nor for the slices of the Service.
func sameLabels(a, b map[string]string) bool {
	return containsLabels(a, b) && containsLabels(b, a)
}

func containsLabels(all, some map[string]string) bool {
	for name, value := range some {
		if got, ok := all[name]; name != corev1.IsHeadlessService && (!ok || got != value) {
			return false
		}
	}
	return true
}
